package limiter_test

import (
	"os"
	"strings"
	"testing"
)

// The Go in the README is a part of Example, line by line, so it compiles and runs.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("readme_example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	example := strings.ReplaceAll(string(source), "\n\t", "\n")
	blocks := strings.Split(string(readme), "```go\n")[1:]
	if len(blocks) == 0 {
		t.Fatal("the README has no Go in it")
	}
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		if !strings.Contains(example, block) {
			t.Errorf("the README's code is not in Example:\n%s", block)
		}
	}
}
