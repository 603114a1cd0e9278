// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

interface PopoverProps {
  label: ComponentChildren;
  title?: string;
  name: string; // for those who do not see it, and for tests
  class?: string;
  children(close: () => void): ComponentChildren;
}

/** A button that opens a small panel below it; Escape or a click elsewhere closes it. */
export function Popover({ label, title, name, class: className = "", children }: PopoverProps) {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    const outside = (e: Event) => {
      if (!box.current?.contains(e.target as globalThis.Node)) setOpen(false);
    };
    const onEscape = (e: KeyboardEvent) => {
      if (e.key !== "Escape") return;
      e.stopPropagation();
      setOpen(false);
      box.current?.querySelector("button")?.focus();
    };
    document.addEventListener("pointerdown", outside);
    box.current?.addEventListener("keydown", onEscape);
    const own = box.current;
    return () => {
      document.removeEventListener("pointerdown", outside);
      own?.removeEventListener("keydown", onEscape);
    };
  }, [open]);
  return (
    <div class="popover" ref={box}>
      <button
        type="button"
        class={className}
        title={title}
        aria-expanded={open}
        aria-haspopup="dialog"
        data-popover={name}
        onClick={() => setOpen(!open)}
      >
        {label}
      </button>
      {open && (
        <div class="popover-panel" role="dialog" aria-label={name}>
          {children(() => setOpen(false))}
        </div>
      )}
    </div>
  );
}
