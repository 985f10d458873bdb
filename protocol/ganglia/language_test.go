package ganglia

import (
	"strings"
	"testing"
)

func TestLanguages(t *testing.T) {
	for language, paths := range map[string][]string{
		"typescript": {"a.ts", "a.tsx"}, "javascript": {"a.js", "a.jsx"}, "python": {"a.py"}, "ruby": {"a.rb"}, "go": {"a.go", "GO"},
		"rust": {"a.rs"}, "java": {"a.java"}, "kotlin": {"a.kt"}, "swift": {"a.swift"}, "c": {"a.c", "a.h"}, "cpp": {"a.cpp", "a.hpp"},
		"csharp": {"a.cs"}, "php": {"a.php"}, "sql": {"a.sql"}, "bash": {"a.sh", "a.bash", "a.zsh", ".bashrc"}, "json": {"a.json"},
		"yaml": {"a.yaml", "a.yml"}, "xml": {"a.xml"}, "html": {"a.html"}, "css": {"a.css"}, "scss": {"a.scss"}, "dart": {"a.dart"},
		"markdown": {"a.md", "README.MD", "a.b.md", "dir.go/a.md", `C:\dir\a.md`}, "dockerfile": {"Dockerfile", "x/Dockerfile"}, "makefile": {"Makefile"},
		"toml": {"Cargo.toml"},
		"":     {"", "/", "a", "a.txt", "a.", "dir.go/a", "a.go.bak", ".", "a.go~"},
	} {
		for _, path := range paths {
			if got := languageOf(path); got != language {
				t.Errorf("%q is %q, want %q", path, got, language)
			}
		}
	}
}

// An extension that two languages claim would be one or the other by chance.
func TestNoExtensionHasTwoLanguages(t *testing.T) {
	n := 0
	for _, list := range extensions {
		n += len(strings.Fields(list))
	}
	if n != len(languages) {
		t.Errorf("%d extensions are listed, %d are known", n, len(languages))
	}
}
