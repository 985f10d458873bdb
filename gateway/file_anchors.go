package gateway

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// document is the tree of a vela.yaml, nil for an empty one. The decoder, which reads each agent by itself, would find no
// anchor that stands in another, so they are resolved here: each alias is what its anchor stands at, and each merge key
// (<<) is the keys that it brings.
func document(text []byte) (ast.Node, error) {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, inLine(err)
	}
	var root ast.Node
	for _, d := range file.Docs {
		switch d.Body.(type) {
		case nil, *ast.CommentGroupNode, *ast.DirectiveNode:
			continue
		}
		if root != nil {
			return nil, fmt.Errorf("line %d: a second document begins: there can be only one", lineOf(d.Body))
		}
		root = d.Body
	}
	r := resolver{anchors: map[string]anchor{}}
	root = r.node(root)
	return root, r.err
}

// maxNodes bounds what aliases make of a file, in nodes: a few lines of aliases of aliases would fill any memory.
const maxNodes = 100_000

// anchor is what stands at one, and of how many nodes that is.
type anchor struct {
	node ast.Node
	size int
}

// resolver goes through a tree in the order of the text, as anchors count from where they stand.
type resolver struct {
	anchors map[string]anchor
	size    int // nodes so far
	err     error
}

// node is a node without anchors and aliases in it.
func (r *resolver) node(n ast.Node) ast.Node {
	r.size++
	switch n := n.(type) {
	case *ast.AnchorNode:
		begin := r.size
		value := r.node(n.Value)
		r.anchors[n.Name.GetToken().Value] = anchor{value, r.size - begin}
		return value
	case *ast.AliasNode:
		return r.alias(n)
	case *ast.TagNode:
		n.Value = r.node(n.Value)
	case *ast.SequenceNode:
		for i, v := range n.Values {
			n.Values[i] = r.node(v)
		}
	case *ast.MappingNode:
		n.Values = r.pairs(n.Values)
	case *ast.MappingValueNode:
		if pairs := r.pairs([]*ast.MappingValueNode{n}); len(pairs) != 1 || pairs[0] != n {
			return ast.Mapping(n.GetToken(), false, pairs...)
		}
	}
	return n
}

func (r *resolver) alias(n *ast.AliasNode) ast.Node {
	a, ok := r.anchors[n.Value.GetToken().Value]
	switch r.size += a.size; {
	case !ok:
		r.fail(n, "there is no anchor (&) of this name above")
	case r.size > maxNodes:
		r.fail(n, "aliases make too much of this file")
	default:
		return a.node
	}
	return n
}

func (r *resolver) fail(n ast.Node, words string) {
	if r.err == nil {
		r.err = fmt.Errorf("line %d: %s", lineOf(n), words)
	}
}

// pairs are the keys of a mapping with their values, its own first: what is merged into it gives way to them.
func (r *resolver) pairs(all []*ast.MappingValueNode) []*ast.MappingValueNode {
	own := make([]*ast.MappingValueNode, 0, len(all))
	taken := map[string]bool{}
	var merged []ast.Node
	for _, p := range all {
		p.Value = r.node(p.Value)
		if p.Key.IsMergeKey() {
			merged = append(merged, p.Value)
			continue
		}
		own = append(own, p)
		taken[p.Key.GetToken().Value] = true
	}
	for _, from := range merged {
		for _, p := range r.keysOf(from) {
			if name := p.Key.GetToken().Value; !taken[name] {
				taken[name] = true
				own = append(own, p)
			}
		}
	}
	return own
}

// keysOf are the keys that a merge key brings, from a mapping or a list of them.
func (r *resolver) keysOf(n ast.Node) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	case *ast.SequenceNode:
		var all []*ast.MappingValueNode
		for _, v := range n.Values {
			if _, list := v.(*ast.SequenceNode); list {
				r.fail(v, "<< takes keys with their values, or a list of those")
				return nil
			}
			all = append(all, r.keysOf(v)...)
		}
		return all
	}
	r.fail(n, "<< takes keys with their values, or a list of those")
	return nil
}
