/** Replaces decimal digits of any script by 0 to 9, as Python reads them. */
export function asciiDigits(text: string): string {
  const digits = new Map<string, string>();
  return text.replace(/(?![0-9])\p{Nd}/gu, (digit) => {
    const value = digits.get(digit) ?? asciiDigit(digit);
    digits.set(digit, value);
    return value;
  });
}

/** Value of a digit: those of a script are consecutive, and some scripts follow each other without a gap. */
function asciiDigit(digit: string): string {
  const code = digit.codePointAt(0)!;
  let run = 0;
  while (/\p{Nd}/u.test(String.fromCodePoint(code - run - 1))) run++;
  return String(run % 10);
}
