/** The nearest whole number of a number from 0, ties to even, as Python's round. */
export function roundHalfEven(value: number): number {
  const floor = Math.floor(value);
  const above = value - floor;
  return above > 0.5 || (above === 0.5 && floor % 2 === 1) ? floor + 1 : floor;
}
