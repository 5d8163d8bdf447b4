/** PyTorch's linspace in float32: the first half counts from the start, the second from the end. */
export function linspace(start: number, end: number, count: number): number[] {
  if (count === 1) return [start];
  const step = Math.fround(Math.fround(end - start) / (count - 1));
  return Array.from({ length: count }, (_, i) =>
    Math.fround(i < count / 2 ? start + Math.fround(step * i) : end - Math.fround(step * (count - 1 - i))),
  );
}
