/** Last chunk of every PNG file, IEND: no data, and its checksum. */
const END = Buffer.from([0, 0, 0, 0, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82]);

export const PNG_END_BYTES = END.length;

/** Whether a PNG file that ends with these bytes was written to its end. */
export const isPngEnd = (bytes: Uint8Array): boolean => END.equals(bytes.subarray(-PNG_END_BYTES));
