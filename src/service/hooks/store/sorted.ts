type Order<T> = (a: T, b: T) => number;

/** Adds an element to a list that is in order. */
export function insert<T>(sorted: T[], element: T, order: Order<T>): void {
  sorted.splice(indexOf(sorted, element, order), 0, element);
}

/** Takes out an element; leaves a list without it as it is. */
export function remove<T>(sorted: T[], element: T, order: Order<T>): void {
  const index = indexOf(sorted, element, order);
  if (sorted[index] === element) sorted.splice(index, 1);
}

/** Index of the first element that is not before another one. */
function indexOf<T>(sorted: readonly T[], element: T, order: Order<T>): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (order(sorted[middle]!, element) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
