// SPDX-License-Identifier: Apache-2.0
// The words in which answers are checked. What comes over the network is not trusted: each
// reader returns a value of the type it promises or throws a DecodeError that says where the
// answer departs from docs/http-api.md.

export class DecodeError extends Error {
  constructor(where: string, want: string, got: unknown) {
    super(`${where}: want ${want}, got ${show(got)}`);
    this.name = "DecodeError";
  }
}

function show(got: unknown): string {
  if (got === undefined) return "nothing";
  const text = JSON.stringify(got) ?? String(got);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

export type Fields = Record<string, unknown>;

export function object(v: unknown, where: string): Fields {
  if (typeof v !== "object" || v === null || Array.isArray(v)) {
    throw new DecodeError(where, "an object", v);
  }
  return v as Fields;
}

export function string(v: unknown, where: string): string {
  if (typeof v !== "string") throw new DecodeError(where, "a string", v);
  return v;
}

export function number(v: unknown, where: string): number {
  if (typeof v !== "number" || !Number.isFinite(v)) throw new DecodeError(where, "a number", v);
  return v;
}

export function boolean(v: unknown, where: string): boolean {
  if (typeof v !== "boolean") throw new DecodeError(where, "true or false", v);
  return v;
}

/** A list whose items are read by item. Go writes an empty list as null at times: that is none. */
export function list<T>(v: unknown, where: string, item: (v: unknown, where: string) => T): T[] {
  if (v === null || v === undefined) return [];
  if (!Array.isArray(v)) throw new DecodeError(where, "a list", v);
  return v.map((x, i) => item(x, `${where}[${i}]`));
}

/** What may be left out, or be null. */
export function optional<T>(
  v: unknown,
  where: string,
  read: (v: unknown, where: string) => T,
  otherwise: T,
): T {
  return v === null || v === undefined ? otherwise : read(v, where);
}

/** A column of numbers, all finite and at least least. */
export function column(v: unknown, where: string, least: number): Float64Array {
  if (!Array.isArray(v)) throw new DecodeError(where, "a list of numbers", v);
  const out = new Float64Array(v.length);
  for (let i = 0; i < v.length; i++) {
    const x = v[i];
    if (typeof x !== "number" || !Number.isFinite(x) || x < least) {
      throw new DecodeError(`${where}[${i}]`, `a number of ${least} or more`, x);
    }
    out[i] = x;
  }
  return out;
}
