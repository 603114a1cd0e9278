// SPDX-License-Identifier: Apache-2.0

/**
 * A colour of even lightness as #rrggbb. The style sheet's own oklch() would do, but a canvas
 * takes several times as long to read it, and a flame graph sets thousands of colours a frame.
 * Matrices: Björn Ottosson, "A perceptual color space for image processing".
 */
export function oklch(lightness: number, chroma: number, hue: number): string {
  const h = (hue * Math.PI) / 180;
  const a = chroma * Math.cos(h);
  const b = chroma * Math.sin(h);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return `#${[
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ]
    .map(channel)
    .join("")}`;
}

/** A linear channel as two hex digits, cut to what a screen can show. */
function channel(linear: number): string {
  const x = Math.min(1, Math.max(0, linear));
  const gamma = x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055;
  return Math.round(255 * gamma)
    .toString(16)
    .padStart(2, "0");
}
