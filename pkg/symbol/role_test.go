// SPDX-License-Identifier: Apache-2.0

package symbol

// roleVariable makes the test binary play a part in a test instead of running tests.
const roleVariable = "SYMBOL_TEST_ROLE"

func playRole(string) {}
