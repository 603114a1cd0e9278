// SPDX-License-Identifier: Apache-2.0

interface ChoiceProps<T extends string> {
  name: string;
  value: T;
  options: readonly (readonly [value: T, label: string, title?: string])[];
  onChoose(value: T): void;
}

/** A few alternatives side by side, one of them chosen. */
export function Choice<T extends string>({ name, value, options, onChoose }: ChoiceProps<T>) {
  return (
    <div class="choice" role="group" aria-label={name}>
      {options.map(([v, label, title]) => (
        <button
          type="button"
          key={v}
          title={title}
          aria-pressed={v === value}
          data-value={v}
          onClick={() => onChoose(v)}
        >
          {label}
        </button>
      ))}
    </div>
  );
}
