//! `#[derive(Code)]`.

use proc_macro2::TokenStream as Tokens;
use quote::{quote, quote_spanned};
use syn::{Attribute, Data, DeriveInput, Error, Expr, Fields};

pub fn expand(input: DeriveInput) -> Result<Tokens, Error> {
    let name = &input.ident;
    let wrong = |what: &str| Error::new_spanned(name, format!("#[derive(Code)] needs {what}"));
    let Data::Enum(data) = &input.data else { return Err(wrong("an enum")) };
    if !input.generics.params.is_empty() {
        return Err(wrong("an enum without parameters"));
    }
    if data.variants.is_empty() || data.variants.iter().any(|v| !matches!(v.fields, Fields::Unit)) {
        return Err(wrong("variants without fields, and at least one"));
    }
    let variants: Vec<_> = data.variants.iter().map(|v| &v.ident).collect();
    let least = quote!(::heddle_hdl::code::least_width(&[#(#name::#variants as i128),*]));
    let width = fixed_width(&input.attrs)?.map_or(least, |width| quote!(#width));
    let checks = variants.iter().map(|variant| {
        let message = format!("the code of `{variant}` is negative or wider than `{name}`");
        quote_spanned!(variant.span() => assert!(::heddle_hdl::code::fits(#name::#variant as i128, WIDTH), #message);)
    });
    Ok(quote! {
        impl ::heddle_hdl::Code for #name {
            const WIDTH: ::heddle_hdl::Width = #width;
            const ALL: &'static [#name] = &[#(#name::#variants),*];
            fn code(self) -> u64 {
                self as u64
            }
        }
        const _: () = {
            const WIDTH: ::heddle_hdl::Width = <#name as ::heddle_hdl::Code>::WIDTH;
            #(#checks)*
        };
    })
}

/// What `#[code(width = …)]` says.
fn fixed_width(attributes: &[Attribute]) -> Result<Option<Expr>, Error> {
    let mut width = None;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("code")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("width") {
                return Err(meta.error("#[code(…)] takes `width = …`"));
            }
            width = Some(meta.value()?.parse()?);
            Ok(())
        })?;
    }
    Ok(width)
}
