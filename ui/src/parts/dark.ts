// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";

/** Whether the reader wants dark colours, now. */
export function useDark(): boolean {
  const [dark, setDark] = useState(() => matchMedia("(prefers-color-scheme: dark)").matches);
  useEffect(() => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const read = () => setDark(query.matches);
    query.addEventListener("change", read);
    return () => query.removeEventListener("change", read);
  }, []);
  return dark;
}
