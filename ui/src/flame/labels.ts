// SPDX-License-Identifier: Apache-2.0
// Names cut to the room that a frame has. Measuring text is the dearest part of drawing, so each
// name is measured once.

/** A name without what can be spared: a Go import path's folders, C++ and Rust arguments. */
export function shorten(name: string): string {
  let short = name;
  const arguments_ = /^([^(<\s]*operator\(\)|[^(<\s]{2,})\(.*\)( const)?$/.exec(short);
  if (arguments_) short = arguments_[1];
  const slash = short.lastIndexOf("/");
  // Not a path in brackets or of a file: only what looks like an import path.
  if (slash > 0 && slash < short.length - 1 && /^[\w.\-~/]+$/.test(short.slice(0, slash))) {
    short = short.slice(slash + 1);
  }
  return short;
}

interface Name {
  full: string;
  fullWidth: number;
  short: string;
  shortWidth: number;
}

export class Labels {
  private readonly names = new Map<string, Name>();

  constructor(private readonly measure: (text: string) => number) {}

  /** What of a name fits into so many pixels: "" when not even two letters do. */
  fit(name: string, pixels: number): string {
    const n = this.of(name);
    if (n.fullWidth <= pixels) return n.full;
    if (n.shortWidth <= pixels) return n.short;
    // Letters differ in width; the mean is near enough, and the canvas clips the rest.
    const letters = Math.floor((n.short.length * pixels) / n.shortWidth) - 1;
    return letters >= 2 ? `${n.short.slice(0, letters)}…` : "";
  }

  private of(name: string): Name {
    let n = this.names.get(name);
    if (!n) {
      const short = shorten(name);
      const fullWidth = this.measure(name);
      n = {
        full: name,
        fullWidth,
        short,
        shortWidth: short === name ? fullWidth : this.measure(short),
      };
      this.names.set(name, n);
    }
    return n;
  }
}
