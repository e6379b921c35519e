//! `#[derive(Bundle)]`.

use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{
    Attribute, Data, DeriveInput, Error, Fields, FieldsNamed, GenericArgument, GenericParam, Ident, PathArguments,
    Token, Type,
};

pub fn expand(input: DeriveInput) -> Result<Tokens, Error> {
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
    let shape = match attribute(&input.attrs, "widths") {
        Some(of) => shape(name, &of.parse_args::<Argument>()?, fields, param)?,
        None => match fields.named.iter().find_map(|f| attribute(&f.attrs, "width").or(attribute(&f.attrs, "when"))) {
            Some(lost) => return Err(Error::new_spanned(lost, "needs #[widths(s: &Shape)] at the struct")),
            None => quote!(),
        },
    };
    Ok(quote! {
        #shape
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

fn attribute<'a>(all: &'a [Attribute], name: &str) -> Option<&'a Attribute> {
    all.iter().find(|attribute| attribute.path().is_ident(name))
}

/// What widths are of: `s: &Shape`.
struct Argument {
    name: Ident,
    of: Type,
}

impl Parse for Argument {
    fn parse(input: ParseStream) -> Result<Argument, Error> {
        let name = input.parse()?;
        input.parse::<Token![:]>()?;
        Ok(Argument { name, of: input.parse()? })
    }
}

/// The function that makes the struct of widths.
fn shape(name: &Ident, of: &Argument, fields: &FieldsNamed, param: &Ident) -> Result<Tokens, Error> {
    let Argument { name: argument, of } = of;
    let mut widths = Vec::new();
    for field in &fields.named {
        let id = &field.ident;
        let expression = |name: &str| attribute(&field.attrs, name).map(|a| a.parse_args::<Tokens>()).transpose();
        let (width, when) = (expression("width")?, expression("when")?);
        let value = match (kind(&field.ty, param)?, &when) {
            (Kind::Option(inner), Some(when)) => {
                let inner = width_of(inner, width.as_ref(), argument, param)?;
                quote!((#when).then(|| #inner))
            }
            (_, Some(_)) => return Err(Error::new_spanned(field, "#[when(…)] is for an Option")),
            (_, None) => width_of(&field.ty, width.as_ref(), argument, param)?,
        };
        widths.push(quote!(#id: #value));
    }
    let doc = format!(" The widths of [`{name}`].");
    Ok(quote! {
        impl #name<::heddle_hdl::Width> {
            #[doc = #doc]
            #[allow(unused_variables)]
            pub fn shape(#argument: #of) -> #name<::heddle_hdl::Width> {
                #name { #(#widths),* }
            }
        }
    })
}

fn width_of(ty: &Type, width: Option<&Tokens>, argument: &Ident, param: &Ident) -> Result<Tokens, Error> {
    Ok(match (kind(ty, param)?, width) {
        (Kind::Array(inner), _) => {
            let inner = width_of(inner, width, argument, param)?;
            quote!(::std::array::from_fn(|_| #inner))
        }
        (_, Some(width)) => quote!(#width),
        (Kind::Leaf, None) => quote!(1),
        (Kind::Bundle, None) => {
            let Type::Path(path) = ty else { unreachable!("a bundle is a path") };
            let mut path = path.clone();
            path.path.segments.last_mut().expect("a path has segments").arguments = PathArguments::None;
            quote!(#path::shape(#argument))
        }
        (Kind::Option(_), None) => return Err(Error::new_spanned(ty, "an Option needs #[when(…)] or #[width(…)]")),
        (Kind::Vec(_), None) => return Err(Error::new_spanned(ty, "a Vec needs #[width(…)]")),
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
