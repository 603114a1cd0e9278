// SPDX-License-Identifier: Apache-2.0
import { moduleColour } from "../flame/colours";
import { useDark } from "../parts/dark";

export function Swatch({ module, realm }: { module: string; realm: string }) {
  return <i class="swatch" style={{ background: moduleColour(module, realm, useDark()) }} />;
}
