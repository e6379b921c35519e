//! The derives of `heddle-hdl`: [`Bundle`](macro@Bundle) for structs of signals, [`Code`](macro@Code) for enums that are
//! numbers in hardware.

#![warn(missing_docs)]

mod bundle;
mod code;

use proc_macro::TokenStream;
use syn::{DeriveInput, Error, parse_macro_input};

/// Implements `heddle_hdl::Bundle<T>` for a struct with one type parameter, `struct Path<T> { valid: T, pc: T, … }`. A
/// field's type is `T`, another bundle of `T`, or an array, `Vec` or `Option` of those.
///
/// `#[widths(s: &Shape)]` at the struct gives `Struct<Width>` a function `shape(s: &Shape)` (or of whatever it names,
/// one argument) that makes it. Of each field:
///
/// * `#[width(…)]` is its width, an expression of `s`; of an array, that of an element;
/// * without it, a `T` has 1 bit, and another bundle is what its own `shape(s)` gives;
/// * an `Option` is there if `#[when(…)]` holds; without that, its `#[width(…)]` is an `Option` itself.
#[proc_macro_derive(Bundle, attributes(widths, width, when))]
pub fn derive_bundle(input: TokenStream) -> TokenStream {
    bundle::expand(parse_macro_input!(input as DeriveInput)).unwrap_or_else(Error::into_compile_error).into()
}

/// Implements `heddle_hdl::Code` for an enum without fields, whose discriminants are the numbers.
///
/// `#[code(width = …)]` at the enum says how wide they are; else they are as wide as the widest. One that is negative or
/// does not fit is an error.
#[proc_macro_derive(Code, attributes(code))]
pub fn derive_code(input: TokenStream) -> TokenStream {
    code::expand(parse_macro_input!(input as DeriveInput)).unwrap_or_else(Error::into_compile_error).into()
}
