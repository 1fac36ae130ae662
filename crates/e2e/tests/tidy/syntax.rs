//! Rust files taken apart, with the lines on which their parts stand.

use std::ops::RangeInclusive;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::source::Source;

/// A file as a tree. A file that does not parse would not compile either.
pub fn parse(source: &Source) -> syn::File {
    syn::parse_file(&source.text).unwrap_or_else(|error| {
        let line = error.span().start().line;
        panic!("{}", source.breach(line, format!("does not parse: {error}")))
    })
}

/// A word or a piece of punctuation or a string, with the line it starts on.
pub enum Token {
    Word(String),
    Text(String),
    Other,
}

/// The tokens of a file in reading order, inside macros too; comments and docs left out.
pub fn tokens(source: &Source) -> Vec<(usize, Token)> {
    let stream: TokenStream = source.text.parse().unwrap_or_else(|error| {
        panic!("{}", source.breach(1, format!("cannot be cut into tokens: {error}")))
    });
    let mut found = Vec::new();
    flatten(stream, &mut found);
    found
}

fn flatten(stream: TokenStream, found: &mut Vec<(usize, Token)>) {
    for tree in stream {
        let line = tree.span().start().line;
        match tree {
            TokenTree::Group(group) if is_doc(&group) => {}
            TokenTree::Group(group) => flatten(group.stream(), found),
            TokenTree::Ident(word) => found.push((line, Token::Word(word.to_string()))),
            TokenTree::Punct(_) => found.push((line, Token::Other)),
            TokenTree::Literal(literal) => found.push((line, text(literal))),
        }
    }
}

/// A doc comment reaches us as the attribute `[doc = "…"]`.
fn is_doc(group: &proc_macro2::Group) -> bool {
    let first = group.stream().into_iter().next();
    group.delimiter() == Delimiter::Bracket
        && matches!(first, Some(TokenTree::Ident(word)) if word == "doc")
}

fn text(literal: proc_macro2::Literal) -> Token {
    match syn::Lit::new(literal) {
        syn::Lit::Str(text) => Token::Text(text.value()),
        _ => Token::Other,
    }
}

/// What a named thing is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Function,
    Test,
    Module,
    Type,
}

/// A named part of a file and the lines it covers, without its attributes and docs.
#[derive(Debug)]
pub struct Part {
    pub kind: Kind,
    pub name: String,
    pub lines: RangeInclusive<usize>,
}

/// Every function, module and type of a file, nested ones and those inside macros included.
pub fn parts(file: &syn::File) -> Vec<Part> {
    let mut walk = Walk::default();
    walk.visit_file(file);
    walk.parts
}

/// The lines that only tests see: all of a file under `tests/`, else its `cfg(test)` modules and
/// its test functions.
pub fn test_lines(source: &Source, file: &syn::File) -> Vec<RangeInclusive<usize>> {
    if source.path.contains("/tests/") {
        return vec![1..=usize::MAX];
    }
    let mut walk = Walk::default();
    walk.visit_file(file);
    walk.test_modules.extend(
        walk.parts.iter().filter(|part| part.kind == Kind::Test).map(|part| part.lines.clone()),
    );
    walk.test_modules
}

#[derive(Default)]
struct Walk {
    parts: Vec<Part>,
    test_modules: Vec<RangeInclusive<usize>>,
}

impl Walk {
    fn note(&mut self, kind: Kind, name: &syn::Ident, lines: RangeInclusive<usize>) {
        self.parts.push(Part { kind, name: name.to_string(), lines });
    }

    fn function(&mut self, attributes: &[syn::Attribute], signature: &syn::Signature, end: usize) {
        let kind = if attributes.iter().any(is_test) { Kind::Test } else { Kind::Function };
        self.note(kind, &signature.ident, signature.span().start().line..=end);
    }
}

impl<'ast> Visit<'ast> for Walk {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.attrs, &item.sig, item.block.span().end().line);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.attrs, &item.sig, item.block.span().end().line);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.function(&item.attrs, &item.sig, item.span().end().line);
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let lines = item.mod_token.span.start().line..=item.span().end().line;
        if item.attrs.iter().any(is_test_only) {
            self.test_modules.push(lines.clone());
        }
        self.note(Kind::Module, &item.ident, lines);
        visit::visit_item_mod(self, item);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.note(Kind::Type, &item.ident, lines(item));
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.note(Kind::Type, &item.ident, lines(item));
        visit::visit_item_enum(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.note(Kind::Type, &item.ident, lines(item));
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.note(Kind::Type, &item.ident, lines(item));
        visit::visit_item_type(self, item);
    }

    /// A macro's input is often plain Rust: read as items, or as statements, what reads as such.
    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        if let Ok(file) = syn::parse2::<syn::File>(item.tokens.clone()) {
            self.visit_file(&file);
        } else if let Ok(all) = syn::Block::parse_within.parse2(item.tokens.clone()) {
            all.iter().for_each(|statement| self.visit_stmt(statement));
        }
    }
}

fn lines(item: &impl Spanned) -> RangeInclusive<usize> {
    item.span().start().line..=item.span().end().line
}

/// `#[test]`, `#[tokio::test]` and their like.
fn is_test(attribute: &syn::Attribute) -> bool {
    let last = attribute.path().segments.last();
    last.is_some_and(|segment| segment.ident == "test" || segment.ident == "rstest")
}

/// `#[cfg(test)]`.
fn is_test_only(attribute: &syn::Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
}
