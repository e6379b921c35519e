//! `#[derive(Bundle)]` for structs with one type parameter, `struct Path<T> { valid: T, pc: T, … }`.
//!
//! A field's type is `T`, another bundle of `T`, or an array, `Vec` or `Option` of those.

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::ext::IdentExt;
use syn::{
    Data, DeriveInput, Error, Fields, GenericArgument, GenericParam, Ident, PathArguments, Type, parse_macro_input,
};

/// Implements `heddle_hdl::Bundle<T>` for the struct.
#[proc_macro_derive(Bundle)]
pub fn derive_bundle(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(input).unwrap_or_else(Error::into_compile_error).into()
}

fn expand(input: DeriveInput) -> Result<Tokens, Error> {
    let name = &input.ident;
    let wrong = |what: &str| Error::new_spanned(name, format!("#[derive(Bundle)] needs {what}"));
    let param = match input.generics.params.iter().collect::<Vec<_>>()[..] {
        [GenericParam::Type(t)] => &t.ident,
        _ => return Err(wrong("exactly one type parameter, as in `struct Path<T>`")),
    };
    let Data::Struct(data) = &input.data else { return Err(wrong("a struct")) };
    let Fields::Named(fields) = &data.fields else { return Err(wrong("named fields")) };
    let mut maps = Vec::new();
    let mut visits = Vec::new();
    for field in &fields.named {
        let id = field.ident.as_ref().expect("named fields have names");
        let text = id.unraw().to_string();
        let at = quote!(&::heddle_hdl::bundle::join(at, #text));
        let map = map_value(quote!(self.#id), at.clone(), &field.ty, param)?;
        maps.push(quote!(#id: #map));
        visits.push(visit_value(quote!(&self.#id), at, &field.ty, param)?);
    }
    Ok(quote! {
        impl<#param> ::heddle_hdl::Bundle<#param> for #name<#param> {
            type With<__U> = #name<__U>;
            fn map<__U>(self, at: &str, f: &mut dyn FnMut(&str, #param) -> __U) -> #name<__U> {
                #name { #(#maps),* }
            }
            fn visit(&self, at: &str, f: &mut dyn FnMut(&str, &#param)) {
                #(#visits)*
            }
        }
    })
}

/// What a field's type is made of.
enum Kind<'a> {
    Leaf,
    Array(&'a Type),
    Vec(&'a Type),
    Option(&'a Type),
    Bundle,
}

fn kind<'a>(ty: &'a Type, param: &Ident) -> Result<Kind<'a>, Error> {
    match ty {
        Type::Array(a) => Ok(Kind::Array(&a.elem)),
        Type::Path(p) if p.path.is_ident(param) => Ok(Kind::Leaf),
        Type::Path(p) => {
            let last = p.path.segments.last().expect("a path has segments");
            let arg = match &last.arguments {
                PathArguments::AngleBracketed(a) => a.args.iter().find_map(|g| match g {
                    GenericArgument::Type(t) => Some(t),
                    _ => None,
                }),
                _ => None,
            };
            match (last.ident.to_string().as_str(), arg) {
                ("Vec", Some(t)) => Ok(Kind::Vec(t)),
                ("Option", Some(t)) => Ok(Kind::Option(t)),
                _ => Ok(Kind::Bundle),
            }
        }
        _ => Err(Error::new_spanned(
            ty,
            "a bundle's field is the type parameter, a bundle, an array, a Vec or an Option",
        )),
    }
}

fn map_value(value: Tokens, at: Tokens, ty: &Type, param: &Ident) -> Result<Tokens, Error> {
    Ok(match kind(ty, param)? {
        Kind::Leaf => quote!(f(#at, #value)),
        Kind::Bundle => quote!(::heddle_hdl::Bundle::map(#value, #at, f)),
        Kind::Array(inner) => {
            let item = map_value(quote!(item), quote!(&at), inner, param)?;
            quote!({
                let outer: &str = #at;
                let mut index = 0usize;
                #value.map(|item| {
                    let at = ::heddle_hdl::bundle::join(outer, &index.to_string());
                    index += 1;
                    #item
                })
            })
        }
        Kind::Vec(inner) => {
            let item = map_value(quote!(item), quote!(&at), inner, param)?;
            quote!({
                let outer: &str = #at;
                #value.into_iter().enumerate().map(|(index, item)| {
                    let at = ::heddle_hdl::bundle::join(outer, &index.to_string());
                    #item
                }).collect::<Vec<_>>()
            })
        }
        Kind::Option(inner) => {
            let item = map_value(quote!(item), at, inner, param)?;
            quote!(#value.map(|item| #item))
        }
    })
}

fn visit_value(value: Tokens, at: Tokens, ty: &Type, param: &Ident) -> Result<Tokens, Error> {
    Ok(match kind(ty, param)? {
        Kind::Leaf => quote!(f(#at, #value);),
        Kind::Bundle => quote!(::heddle_hdl::Bundle::visit(#value, #at, f);),
        Kind::Array(inner) | Kind::Vec(inner) => {
            let item = visit_value(quote!(item), quote!(&at), inner, param)?;
            quote!({
                let outer: &str = #at;
                for (index, item) in (#value).iter().enumerate() {
                    let at = ::heddle_hdl::bundle::join(outer, &index.to_string());
                    #item
                }
            })
        }
        Kind::Option(inner) => {
            let item = visit_value(quote!(item), at, inner, param)?;
            quote!(if let Some(item) = #value { #item })
        }
    })
}
