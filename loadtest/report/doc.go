// Package report shows the result of a load test: as text for people, with a table per
// node and the verdict, and as JSON for programs.
//
// Another column of the table is a field of [audit.Node] and a value in row and nodeTable's header
// and sum, with the golden files in testdata; another form of the report is a function beside [Text] and [JSON].
package report
