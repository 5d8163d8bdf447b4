/** Rounds to the nearest whole number, halves to the even one, as Python and PyTorch do; Math.round rounds them up. */
export function roundHalfEven(x: number): number {
  const rounded = Math.round(x);
  return rounded - x === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
}
