import { fdatasync, fsync } from "node:fs";
import { promisify } from "node:util";

// by descriptors: the files of Yarn's Plug'n'Play cannot sync themselves
const [all, data] = [promisify(fsync), promisify(fdatasync)];

/** Resolves once a file is on the disk. */
export const syncFile = ({ fd }: { readonly fd: number }): Promise<void> => all(fd);
/** As `syncFile`, without times that nothing needs to read the file again. */
export const syncData = ({ fd }: { readonly fd: number }): Promise<void> => data(fd);
