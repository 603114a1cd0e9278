// SPDX-License-Identifier: Apache-2.0

package oncpu

//go:generate go tool bpf2go -cc clang-19 -cflags "-O2 -g -Wall -Wextra -Werror -Wno-unused-parameter" -target amd64,arm64 -type oncpu_sample -type oncpu_user_form -type lost_place kern ../../../bpf/oncpu.bpf.c
