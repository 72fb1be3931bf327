// Splits a byte stream into lines of JSON.

const longest = 64 << 20; // characters of one line

/** Reads to the end of the stream, or until `signal`. Calls `receive` with each line's value; a line that is not JSON is an error. */
export async function readLines(body: ReadableStream<Uint8Array>, receive: (value: unknown) => void, signal?: AbortSignal): Promise<void> {
  const reader = body.getReader();
  const stop = () => void reader.cancel().catch(() => undefined);
  signal?.addEventListener("abort", stop);
  const decoder = new TextDecoder();
  let begun: string[] = []; // pieces of an incomplete line
  let length = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      const text = done ? decoder.decode() : decoder.decode(value, { stream: true });
      let from = 0;
      for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", from)) {
        begun.push(text.slice(from, end));
        deliver(begun.join(""), receive);
        begun = [];
        length = 0;
        from = end + 1;
      }
      if (from < text.length) {
        begun.push(text.slice(from));
        length += text.length - from;
      }
      if (length > longest) throw new Error("a line of the stream is too long");
      if (done) {
        if (!signal?.aborted) deliver(begun.join(""), receive);
        return;
      }
    }
  } finally {
    signal?.removeEventListener("abort", stop);
    stop();
  }
}

function deliver(line: string, receive: (value: unknown) => void): void {
  if (line.trim() !== "") receive(JSON.parse(line));
}
