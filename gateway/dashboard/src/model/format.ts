// Formats numbers and times for display.

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

export function count(value: number): string {
  return grouped.format(value);
}

const shownDigits = 12; // as the command line shows

/** Shortens the id of a deployment, or a digest in hex. */
export function shortId(id: string): string {
  return id.slice(0, shownDigits);
}

/** "3 pairs", "1 pair". */
export function plural(value: number, word: string): string {
  return `${count(value)} ${word}${value === 1 ? "" : "s"}`;
}

/** Formats a share from 0 to 1. Rounds down: 100 % means that nothing is missing. */
export function percent(share: number): string {
  const tenths = Math.floor(Math.min(Math.max(share, 0), 1) * 1000 + 1e-9) / 10;
  return `${Number.isInteger(tenths) ? tenths : tenths.toFixed(1)} %`;
}

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** Formats a size as the command line does: rounded down, with a tenth below ten. */
export function bytes(value: number): string {
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  const tenths = Math.floor(value * 10) / 10;
  return `${unit === 0 || value >= 10 ? Math.floor(value) : tenths} ${units[unit]}`;
}

/** Formats seconds as the two largest units. */
export function duration(total: number): string {
  const s = Math.max(0, Math.floor(total));
  const [d, h, min] = [Math.floor(s / 86400), Math.floor(s / 3600) % 24, Math.floor(s / 60) % 60];
  if (d > 0) return both(`${d} d`, h, "h");
  if (h > 0) return both(`${h} h`, min, "min");
  if (min > 0) return both(`${min} min`, min < 10 ? s % 60 : 0, "s");
  return `${s} s`;
}

function both(large: string, small: number, unit: string): string {
  return small > 0 ? `${large} ${small} ${unit}` : large;
}

/** Formats milliseconds since 1970 as the time of day, with the date unless it is the day of `now`. */
export function clock(at: number, now: number): string {
  if (!at) return "";
  const date = new Date(at);
  const hours = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
  if (date.toDateString() === new Date(now).toDateString()) return hours;
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${hours}`;
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}

/** Formats a time range relative to `now`: "in 4 to 12 min", "any moment". Uses whole minutes from one minute on. */
export function range(earliest: number, latest: number, now: number): string {
  const [from, to] = [(earliest - now) / 1000, (latest - now) / 1000];
  if (to <= 0) return "any moment";
  if (from <= 1) return `within ${coarse(to)}`;
  const [a, b] = [coarse(from), coarse(to)];
  return a === b ? `in about ${a}` : `in ${a} to ${b}`;
}

function coarse(s: number): string {
  return duration(s < 60 ? Math.ceil(s) : Math.round(s / 60) * 60);
}

/** Returns the name in the URI of an identity: "alice" of spiffe://fleet/user/alice. */
export function nameOf(uri: string): string {
  return uri.slice(uri.lastIndexOf("/") + 1);
}

/** Describes a clock skew; "" if it is less than a second. */
export function skew(s: number): string {
  if (Math.abs(s) < 1) return "";
  return `${duration(Math.abs(s))} ${s > 0 ? "ahead" : "behind"}`;
}
