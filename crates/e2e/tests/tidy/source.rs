//! The repository as the rules see it: its text files, and the places where they break a rule.

use std::fs;
use std::path::{Path, PathBuf};

/// What is read at all. Vendored scripts, styles and binaries have other authors.
const KINDS: [&str; 5] = ["rs", "sh", "sql", "toml", "md"];

/// Shell scripts whose callers expect a name without an ending.
const SCRIPTS: [&str; 2] = ["test", ".ci/run"];

/// Folders that hold nothing written by hand.
const SKIPPED: [&str; 4] = ["target", ".git", ".test", "node_modules"];

/// One text file, its path relative to the root of the repository.
pub struct Source {
    pub path: String,
    pub text: String,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    pub fn is(&self, kind: &str) -> bool {
        extension(&self.path) == kind
    }

    pub fn is_code(&self) -> bool {
        self.is("rs") || self.is("sh") || self.is("sql") || SCRIPTS.contains(&self.path.as_str())
    }

    /// A breach of a rule in one line of this file.
    pub fn breach(&self, line: usize, what: impl std::fmt::Display) -> String {
        format!("{}:{line}: {what}", self.path)
    }
}

/// Every text file of the repository, committed or not.
pub fn repository() -> Vec<Source> {
    let root = root();
    let mut found = Vec::new();
    gather(&root, &root, &mut found);
    assert!(
        found.iter().any(|source| source.path == "crates/e2e/tests/tidy.rs"),
        "{} is not the repository",
        root.display()
    );
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// The Rust files of the repository.
pub fn rust() -> Vec<Source> {
    repository().into_iter().filter(|source| source.is("rs")).collect()
}

/// The folder that holds the workspace.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("crates/e2e lies two folders deep").to_owned()
}

/// Fails with every breach on a line of its own.
#[track_caller]
pub fn assert_none(breaches: Vec<String>) {
    assert!(breaches.is_empty(), "\n{}\n", breaches.join("\n"));
}

fn gather(root: &Path, folder: &Path, found: &mut Vec<Source>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    for entry in entries {
        let entry = entry.expect("a folder's entry can be read");
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type().expect("an entry has a type");
        if kind.is_dir() {
            if !SKIPPED.contains(&name.as_str()) {
                gather(root, &path, found);
            }
            continue;
        }
        let relative = path.strip_prefix(root).expect("a file under the root");
        let relative = relative.to_string_lossy().into_owned();
        if kind.is_file() && is_read(&relative) {
            // An editor may take a file away between the listing and the reading.
            if let Ok(text) = fs::read_to_string(&path) {
                found.push(Source { path: relative, text });
            }
        }
    }
}

fn is_read(path: &str) -> bool {
    KINDS.contains(&extension(path)) || SCRIPTS.contains(&path)
}

fn extension(path: &str) -> &str {
    Path::new(path).extension().and_then(|ending| ending.to_str()).unwrap_or("")
}
