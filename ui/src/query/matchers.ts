// SPDX-License-Identifier: Apache-2.0
// Label matchers as Prometheus writes them: {node="n",workload=~"llama.*"}. The page reads them to
// show and edit them; what a regular expression means is the server's business.

export type Operator = "=" | "!=" | "=~" | "!~";

export interface Matcher {
  name: string;
  op: Operator;
  value: string;
}

export class QueryError extends Error {
  readonly at: number;
  constructor(at: number, message: string) {
    super(message);
    this.name = "QueryError";
    this.at = at;
  }
}

/** Reads matchers, with or without braces; throws a QueryError that says where it stopped. */
export function parseQuery(text: string): Matcher[] {
  let at = 0;
  const fail = (message: string): never => {
    throw new QueryError(at, message);
  };
  const space = () => {
    while (/\s/.test(text[at] ?? "")) at++;
  };
  const take = (re: RegExp): string => {
    re.lastIndex = at;
    const found = re.exec(text)?.[0] ?? "";
    at += found.length;
    return found;
  };

  space();
  const braced = take(/\{/y) !== "";
  const out: Matcher[] = [];
  for (;;) {
    space();
    if (at === text.length || text[at] === "}") break;
    if (out.length > 0 && take(/,/y) === "") fail("a comma belongs between matchers");
    space();
    if (text[at] === "}") break; // a comma may stand last, as in Prometheus
    const name = take(/[A-Za-z_][A-Za-z0-9_]*/y) || fail("a label name belongs here");
    space();
    const op = (take(/=~|!~|!=|=/y) || fail("one of =, !=, =~, !~ belongs here")) as Operator;
    space();
    out.push({ name: name as string, op, value: quoted(text, at, (to) => (at = to)) });
  }
  if (braced && take(/\}/y) === "") fail("a closing brace is missing");
  space();
  if (at < text.length)
    fail(braced ? "nothing belongs behind the brace" : "there is no opening brace");
  return out;
}

const ESCAPES: Record<string, string> = { n: "\n", t: "\t", r: "\r" };

function quoted(text: string, at: number, to: (at: number) => void): string {
  const quote = text[at];
  if (quote !== '"' && quote !== "'" && quote !== "`") {
    throw new QueryError(at, "a value in quotes belongs here");
  }
  let out = "";
  for (let i = at + 1; i < text.length; i++) {
    if (text[i] === quote) {
      to(i + 1);
      return out;
    }
    if (text[i] === "\\" && quote !== "`") {
      i++;
      out += ESCAPES[text[i]] ?? text[i] ?? "";
    } else {
      out += text[i];
    }
  }
  throw new QueryError(at, "the value's closing quote is missing");
}

export function formatQuery(matchers: Matcher[]): string {
  if (matchers.length === 0) return "";
  return `{${matchers.map((m) => `${m.name}${m.op}${quote(m.value)}`).join(",")}}`;
}

function quote(value: string): string {
  const escaped = value
    .replace(/\\/g, "\\\\")
    .replace(/"/g, '\\"')
    .replace(/\n/g, "\\n")
    .replace(/\t/g, "\\t")
    .replace(/\r/g, "\\r");
  return `"${escaped}"`;
}

/** The values that a label is picked to be, when its matcher is a plain list; null when it is not. */
export function picked(matchers: Matcher[], name: string): string[] | null {
  const own = matchers.filter((m) => m.name === name);
  if (own.length === 0) return [];
  if (own.length > 1) return null;
  if (own[0].op === "=") return [own[0].value];
  if (own[0].op !== "=~") return null;
  return alternatives(own[0].value);
}

/** Picks a label's values: none takes its matchers away, one is "=", several are alternatives. */
export function pick(matchers: Matcher[], name: string, values: string[]): Matcher[] {
  const at = matchers.findIndex((m) => m.name === name);
  const rest = matchers.filter((m) => m.name !== name);
  if (values.length === 0) return rest;
  const own: Matcher =
    values.length === 1
      ? { name, op: "=", value: values[0] }
      : { name, op: "=~", value: values.map(literally).join("|") };
  return at < 0 ? [...rest, own] : rest.toSpliced(at, 0, own);
}

const SPECIAL = /[\\^$.*+?()[\]{}|]/g;

function literally(value: string): string {
  return value.replace(SPECIAL, "\\$&");
}

/** The inverse of joining escaped values by "|"; null for any other expression. */
function alternatives(expression: string): string[] | null {
  const out: string[] = [];
  let current = "";
  for (let i = 0; i < expression.length; i++) {
    const c = expression[i];
    if (c === "|") {
      out.push(current);
      current = "";
    } else if (c === "\\" && /[^A-Za-z0-9]/.test(expression[i + 1] ?? "a")) {
      current += expression[++i];
    } else if (/[\\^$.*+?()[\]{}]/.test(c)) {
      return null;
    } else {
      current += c;
    }
  }
  return [...out, current];
}

/** The part of a query that also selects readings and nodes: its matchers of the label node. */
export function nodesOnly(query: string): string {
  try {
    return formatQuery(parseQuery(query).filter((m) => m.name === "node"));
  } catch {
    return "";
  }
}
