declare module "oled-font-5x7" {
  /** Five columns for each character of `lookup`, from the left; the lowest bit of a column is its top pixel. */
  const font: { readonly fontData: readonly number[]; readonly lookup: readonly string[] };
  export = font;
}
