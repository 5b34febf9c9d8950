// Package order sorts resources by members of their values.
//
// A value is encoded as a sort key: bytes that compare as the values do. So one comparison of
// bytes decides, however many members the order has, and a tree holds nothing but bytes.
//
// The values of one member compare like this: null, false, true, numbers by value, texts by code
// points, and then arrays and objects, which are all equal. A member that is absent comes last,
// also in descending order. Resources that are equal come in the order of the bytes of their keys. So
// an order read backwards is not the opposite order, and each of the two needs a tree.
//
// A Builder makes a tree of many keys at once; Set and Delete change it.
//
// A number is compared digit by digit, and is never expanded: 1e999999999 takes as much room as 1.
// The first MaxDigits significant digits count, the first MaxText bytes of a text, and exponents up
// to MaxExponent in size.
package order
