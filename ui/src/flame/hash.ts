// SPDX-License-Identifier: Apache-2.0
// FNV-1a: small, and the same on every machine, so that colours and links are stable.

const OFFSET = 0x811c9dc5;
const PRIME = 0x01000193;

export function hash(text: string): number {
  let h = OFFSET;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), PRIME);
  return scramble(h);
}

/** Hashes a number onto a hash. */
export function mix(h: number, x: number): number {
  return scramble(Math.imul(h ^ x, PRIME) ^ (x >>> 15));
}

/** Spreads a hash over all bits: FNV's low bits of short texts are alike. */
function scramble(h: number): number {
  h ^= h >>> 16;
  h = Math.imul(h, 0x7feb352d);
  h ^= h >>> 15;
  h = Math.imul(h, 0x846ca68b);
  return (h ^ (h >>> 16)) >>> 0;
}
