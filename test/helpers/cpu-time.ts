/** Milliseconds of the processor's time since `start`: what else the machine does is not in them. */
export function cpuMsSince(start: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}
