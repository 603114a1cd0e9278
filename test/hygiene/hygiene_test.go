// SPDX-License-Identifier: Apache-2.0

// Package hygiene checks the few habits that no linter knows. It has no code but this test.
package hygiene

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// skipped folders hold what others wrote or tools made.
var skipped = []string{".git", "bin", "out", "node_modules", "dist", "testdata", "diagon-data"}

func TestEveryFileNamesItsLicence(t *testing.T) {
	for path, text := range sources(t, ".go", ".ts", ".tsx", ".mjs", ".css", ".sh", ".proto", ".c", ".h") {
		want := "SPDX-License-Identifier: Apache-2.0"
		if strings.HasPrefix(path, "bpf/") {
			want = "SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause"
		}
		head := text[:min(len(text), 400)]
		if !bytes.Contains(head, []byte(want)) && !bytes.Contains(head, []byte("DO NOT EDIT")) {
			t.Errorf("%s does not say %q at its top", path, want)
		}
	}
}

// TestOnlyMainExits: an exit from elsewhere leaves kernel objects half closed and cannot be tested.
func TestOnlyMainExits(t *testing.T) {
	exits := map[string][]string{
		"os":  {"Exit"},
		"log": {"Fatal", "Fatalf", "Fatalln", "Panic", "Panicf", "Panicln"},
	}
	for path, file := range parsed(t) {
		if strings.HasSuffix(path, "_test.go") || file.Name.Name == "main" && filepath.Base(path) == "main.go" {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if pkg, ok := sel.X.(*ast.Ident); ok && slices.Contains(exits[pkg.Name], sel.Sel.Name) {
					t.Errorf("%s calls %s.%s: only a main.go exits", path, pkg.Name, sel.Sel.Name)
				}
			}
			return true
		})
	}
}

// TestNoPackageIsCalledByItsShapelessness: such a name collects anything.
func TestNoPackageIsCalledByItsShapelessness(t *testing.T) {
	for path, file := range parsed(t) {
		if slices.Contains([]string{"util", "utils", "common", "helpers", "misc", "base", "lib"}, file.Name.Name) {
			t.Errorf("%s: package %s answers no question; name the one it does", path, file.Name.Name)
		}
	}
}

func parsed(t *testing.T) map[string]*ast.File {
	t.Helper()
	files := make(map[string]*ast.File)
	for path, text := range sources(t, ".go") {
		f, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files[path] = f
	}
	return files
}

// sources reads the files with one of the extensions, by their path from the top of the tree.
func sources(t *testing.T, extensions ...string) map[string][]byte {
	t.Helper()
	const top = "../.."
	files := make(map[string][]byte)
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains(skipped, d.Name()) {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() || !slices.Contains(extensions, filepath.Ext(path)) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		files[filepath.ToSlash(name)] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("no %v below %s", extensions, top)
	}
	return files
}
