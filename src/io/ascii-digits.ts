/** Decimal digits of any script as 0 to 9, as Python reads them. */
export function asciiDigits(text: string): string {
  return text.replace(/(?![0-9])\p{Nd}/gu, (digit) => {
    const code = digit.codePointAt(0)!;
    let run = 0;
    while (/\p{Nd}/u.test(String.fromCodePoint(code - run - 1))) run++;
    return String(run % 10);
  });
}
