// Reads JSON so that numbers keep the text of their author: 0.10 and 9007199254740993.

const tokens = /"(?:[^"\\]|\\.)*"|[{}[\],:]/g;

/** Returns the text of each member of a JSON object, or of each element of an array, by name or index. Throws a SyntaxError if it is no JSON. */
export function members(json: string): Map<string, string> {
  const found = new Map<string, string>();
  const list = Array.isArray(JSON.parse(json));
  let depth = 0;
  let name = "";
  let begin = -1; // of a value
  const finish = (end: number) => {
    const value = begin < 0 ? "" : json.slice(begin, end).trim();
    if (value) found.set(list ? String(found.size) : name, value);
    begin = list ? end + 1 : -1;
  };
  for (const { 0: token, index } of json.matchAll(tokens)) {
    if (token === "{" || token === "[") {
      if (++depth === 1 && list) begin = index + 1;
    } else if (token === "}" || token === "]") {
      if (--depth === 0) finish(index);
    } else if (depth === 1) {
      if (token === ",") finish(index);
      else if (token === ":") begin = index + 1;
      else if (begin < 0) name = JSON.parse(token) as string;
    }
  }
  return found;
}

/** Returns the text of a member of an object, or null. */
export function member(json: string | null | undefined, name: string): string | null {
  return json ? members(json).get(name) ?? null : null;
}

/** Returns a value on one line for people. */
export function inline(json: string): string {
  const value: unknown = JSON.parse(json);
  if (typeof value !== "object" || value === null) return json;
  const parts = [...members(json)].map(([name, each]) => (Array.isArray(value) ? inline(each) : `${JSON.stringify(name)}: ${inline(each)}`));
  return Array.isArray(value) ? `[${parts.join(", ")}]` : `{${parts.join(", ")}}`;
}
