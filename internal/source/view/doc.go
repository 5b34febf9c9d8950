// Package view follows a part of another watch of the same process: the resources that a
// definition selects, with the fields that it keeps.
package view
