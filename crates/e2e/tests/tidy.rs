//! The rules of the house that a compiler does not hold, read off the repository itself. Each
//! rule stands beside a test that breaks it on purpose, so that a rule which can no longer fail
//! is noticed. CONTRIBUTING.md says what each rule is for.

#[path = "tidy/claims.rs"]
mod claims;
#[path = "tidy/clock.rs"]
mod clock;
#[path = "tidy/dependencies.rs"]
mod dependencies;
#[path = "tidy/errors.rs"]
mod errors;
#[path = "tidy/layers.rs"]
mod layers;
#[path = "tidy/licence.rs"]
mod licence;
#[path = "tidy/links.rs"]
mod links;
#[path = "tidy/names.rs"]
mod names;
#[path = "tidy/size.rs"]
mod size;
#[path = "tidy/source.rs"]
mod source;
#[path = "tidy/syntax.rs"]
mod syntax;
#[path = "tidy/unfinished.rs"]
mod unfinished;
