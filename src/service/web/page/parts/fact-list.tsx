/** Names with their values, one below the other; those without a value are left out. */
export function FactList({ rows }: { rows: readonly (readonly [name: string, value: string | undefined])[] }) {
  return (
    <dl class="facts">
      {rows.map(([name, value]) =>
        value === undefined ? null : (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ),
      )}
    </dl>
  );
}
