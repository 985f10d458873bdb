package ganglia

import "strings"

// languageOf names the language of a file, as highlighters call it; empty if it is not known. The extension decides, in
// any case of its letters; a name without a dot counts as its own.
func languageOf(path string) string {
	name := strings.ToLower(base(path))
	return languages[name[strings.LastIndexByte(name, '.')+1:]]
}

var languages = func() map[string]string {
	m := map[string]string{}
	for language, list := range extensions {
		for extension := range strings.FieldsSeq(list) {
			m[extension] = language
		}
	}
	return m
}()

// extensions has the extensions of each language.
var extensions = map[string]string{
	"typescript": "ts tsx mts cts", "javascript": "js jsx mjs cjs", "python": "py pyi pyw", "ruby": "rb rake gemspec gemfile rakefile",
	"go": "go", "rust": "rs", "java": "java", "kotlin": "kt kts", "swift": "swift", "c": "c h", "cpp": "cpp hpp cc cxx hh hxx ino",
	"csharp": "cs csx", "php": "php phtml", "sql": "sql", "bash": "sh bash zsh ksh bashrc zshrc bash_profile profile", "json": "json jsonc json5 geojson",
	"yaml": "yaml yml", "xml": "xml xsd xsl xslt svg plist csproj", "html": "html htm xhtml", "css": "css", "scss": "scss", "markdown": "md markdown mdx",
	"dart": "dart",

	"ada": "adb ads", "asm": "asm", "awk": "awk", "clojure": "clj cljs cljc edn", "cmake": "cmake", "coffeescript": "coffee", "crystal": "cr",
	"cuda": "cu cuh", "diff": "diff patch", "dockerfile": "dockerfile containerfile", "elixir": "ex exs", "elm": "elm", "erlang": "erl hrl",
	"fish": "fish", "fortran": "f f90 f95 f03", "fsharp": "fs fsi fsx", "gdscript": "gd", "glsl": "glsl vert frag",
	"graphql": "graphql gql", "groovy": "groovy gradle jenkinsfile", "haskell": "hs lhs", "hcl": "hcl tf tfvars", "ini": "ini cfg conf editorconfig",
	"julia": "jl", "just": "justfile", "latex": "tex sty", "less": "less", "lisp": "lisp lsp el", "lua": "lua", "makefile": "makefile mk gnumakefile",
	"nim": "nim", "nix": "nix", "objective-c": "m mm", "ocaml": "ml mli", "pascal": "pas", "perl": "pl pm", "powershell": "ps1 psm1 psd1",
	"prisma": "prisma", "properties": "properties", "protobuf": "proto", "r": "r", "restructuredtext": "rst", "sass": "sass",
	"scala": "scala sc sbt", "scheme": "scm ss rkt", "solidity": "sol", "svelte": "svelte", "systemverilog": "sv svh", "tcl": "tcl", "toml": "toml",
	"vb": "vb", "verilog": "v", "vhdl": "vhd vhdl", "vim": "vim vimrc", "vue": "vue", "wgsl": "wgsl", "zig": "zig", "bat": "bat cmd",
}
