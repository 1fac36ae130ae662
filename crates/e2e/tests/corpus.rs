//! The fuzz targets' corpus is replayed, with some mutations of it. The soak command runs any
//! number: `cargo run -p counterfoil-e2e --bin soak -- --fuzz 1000000`.

use counterfoil_e2e::fuzz::{TARGETS, check, corpus, fuzz, signed_request};

/// Mutations of each target in CI: a few seconds.
const ROUNDS: u64 = 5_000;

#[test]
fn every_input_of_the_corpus_and_some_mutations_hold() {
    for target in &TARGETS {
        assert!(corpus(target).len() >= 10, "{}", target.name);
        let broken = fuzz(target, ROUNDS, 20_260_908);
        let shown = broken.map(|broken| {
            let input = String::from_utf8_lossy(&broken.input).into_owned();
            format!("{}: {}: {input}", broken.target, broken.why)
        });
        assert_eq!(shown, None);
    }
}

#[test]
fn the_signature_target_sees_what_is_let_in() {
    use counterfoil_protocol::signing::content_digest;
    let signature = TARGETS.iter().find(|target| target.name == "signature").unwrap();
    assert!(check(signature, &signed_request()).is_none());
    // The same signature over another body: refused, or the target would say so.
    let text = String::from_utf8(signed_request()).unwrap();
    let digest = text.lines().nth(2).unwrap().to_owned();
    let other = text.replace("{\"taskId\":\"1\"}", "{}").replace(&digest, &content_digest(b"{}"));
    assert!(check(signature, other.as_bytes()).is_none());
}
