use super::*;

const NOW: i64 = 1_788_000_000;
/// The library's own example secret, and its 32 bytes 00…1f.
const SIGNING: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const A256: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
const SM4: &str = "AAECAwQFBgcICQoLDA0ODw";

fn key(suite: &dyn Suite, id: &str, last: char) -> SealKey {
    let encryption = if suite.name() == "gm" { SM4 } else { A256 };
    // Another key ends in another letter of its signing secret.
    let signing = format!("{}{last}aSw", &SIGNING[..SIGNING.len() - 4]);
    SealKey::parse(id, &signing, encryption).unwrap()
}

fn seal(suite: &dyn Suite, keys: &[SealKey]) -> Sealed {
    let message =
        Message { id: "P:1", timestamp: NOW, nonce: [7; NONCE_BYTES], plain: b"{\"state\":1}" };
    suite.seal(keys, &message).unwrap()
}

fn received(sealed: &Sealed) -> Received<'_> {
    Received {
        id: &sealed.id,
        timestamp: &sealed.timestamp,
        signature: &sealed.signature,
        body: sealed.body.as_bytes(),
    }
}

fn open(suite: &dyn Suite, keys: &[SealKey], sealed: &Sealed) -> Result<Vec<u8>, SealError> {
    suite.open(keys, &received(sealed), NOW).map(|opened| opened.plain)
}

/// From the tests of the standardwebhooks libraries.
#[test]
fn the_signature_of_standard_webhooks_own_example() {
    let key = SealKey::parse("k", SIGNING, A256).unwrap();
    let received = Received {
        id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp: "1614265330",
        signature: "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        body: br#"{"test": 2432232314}"#,
    };
    // Verified, and then no sealed body.
    let opened = JOSE.open(std::slice::from_ref(&key), &received, 1_614_265_330);
    assert_eq!(opened, Err(SealError::Shape("it has not five parts")));
    let other = Received { body: br#"{"test":2432232314}"#, ..received };
    assert_eq!(JOSE.open(&[key], &other, 1_614_265_330), Err(SealError::Signature));
}

/// Signs a body that somebody else made.
fn signed(body: &str) -> Sealed {
    let key = key(JOSE, "k1", 'L');
    let mut sealed = seal(JOSE, std::slice::from_ref(&key));
    body.clone_into(&mut sealed.body);
    sealed.signature = super::suite::sign_jose(&key, &sealed);
    sealed
}

/// Both bodies were made by jwcrypto 1.5 with the key 00…1f.
#[test]
fn a_jwe_of_another_library_is_opened_and_one_with_zip_is_refused() {
    let keys = [key(JOSE, "k1", 'L')];
    let good = signed(
        "eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIiwia2lkIjoiazEifQ..Uw4RKuAKKlU0Z83S.\
         shFpBehZrT1CLcE.s_Ca8gHX7gyhP1uTIWeMWw",
    );
    assert_eq!(open(JOSE, &keys, &good), Ok(b"{\"state\":1}".to_vec()));
    let zipped = signed(
        "eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIiwiemlwIjoiREVGIn0..34OknHEX7UNdUM7W.\
         BRHa3_Jygx-nEMWqkg.sPNxXQ5asQJ8ekJWT4gaXQ",
    );
    let opened = open(JOSE, &keys, &zipped);
    assert!(matches!(opened, Err(SealError::Shape(_))), "{opened:?}");
}

#[test]
fn headers_of_other_algorithms_are_refused_although_they_are_signed() {
    use base64::Engine;
    let keys = [key(JOSE, "k1", 'L')];
    let good = seal(JOSE, &keys).body;
    let (_, rest) = good.split_once('.').unwrap();
    let table = [
        r#"{"alg":"dir","enc":"A128GCM"}"#,
        r#"{"alg":"A256KW","enc":"A256GCM"}"#,
        r#"{"alg":"none","enc":"A256GCM"}"#,
        r#"{"alg":"dir","enc":"SM4GCM"}"#,
        r#"{"alg":"dir","enc":"A256GCM","crit":["exp"]}"#,
        r#"{"alg":"dir","enc":"A256GCM","zip":"DEF"}"#,
        r#"{"alg":"dir","alg":"dir","enc":"A256GCM"}"#,
        r#"{"enc":"A256GCM"}"#,
        r#"["dir","A256GCM",null]"#,
        "",
    ];
    for header in table {
        let header = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(header);
        let opened = open(JOSE, &keys, &signed(&format!("{header}.{rest}")));
        assert!(matches!(opened, Err(SealError::Shape(_))), "{header}: {opened:?}");
    }
    for body in [good.replacen("..", ".AA.", 1), format!("{good}."), "a.b".into(), String::new()] {
        let opened = open(JOSE, &keys, &signed(&body));
        assert!(matches!(opened, Err(SealError::Shape(_))), "{body}: {opened:?}");
    }
}

#[test]
fn a_signed_body_whose_inside_was_changed_is_not_decrypted() {
    let keys = [key(JOSE, "k1", 'L')];
    let good = seal(JOSE, &keys).body;
    let (start, last) = good.rsplit_once('.').unwrap();
    let first = if last.starts_with('A') { 'B' } else { 'A' };
    let opened = open(JOSE, &keys, &signed(&format!("{start}.{first}{}", &last[1..])));
    assert_eq!(opened, Err(SealError::Decryption));
}

#[test]
fn any_flipped_bit_is_refused_before_anything_is_decrypted() {
    for suite in [JOSE, GM] {
        let keys = [key(suite, "k1", 'L')];
        let good = seal(suite, &keys);
        assert_eq!(open(suite, &keys, &good), Ok(b"{\"state\":1}".to_vec()));
        let parts = [&good.id, &good.timestamp, &good.signature, &good.body];
        for (which, part) in parts.into_iter().enumerate() {
            for at in 0..part.len() * 8 {
                let mut bytes = part.clone().into_bytes();
                bytes[at / 8] ^= 1 << (at % 8);
                let text = String::from_utf8(bytes.clone());
                let bad = match (which, &text) {
                    (3, _) => Received { body: &bytes, ..received(&good) },
                    (_, Err(_)) => continue, // no header can carry it
                    (0, Ok(text)) => Received { id: text, ..received(&good) },
                    (1, Ok(text)) => Received { timestamp: text, ..received(&good) },
                    (_, Ok(text)) => Received { signature: text, ..received(&good) },
                };
                let refused = suite.open(&keys, &bad, NOW).unwrap_err();
                let before = matches!(
                    refused,
                    SealError::Signature | SealError::Header(_) | SealError::Stale { .. }
                );
                assert!(before && refused.is_before_decryption(), "{suite:?} {which} {at}");
            }
        }
    }
}

#[test]
fn five_minutes_either_way_are_allowed_and_no_second_more() {
    let keys = [key(JOSE, "k1", 'L')];
    let good = seal(JOSE, &keys);
    for (apart, is_allowed) in [(-301, false), (-300, true), (0, true), (300, true), (301, false)] {
        let opened = JOSE.open(&keys, &received(&good), NOW + apart);
        assert_eq!(opened.is_ok(), is_allowed, "{apart}: {opened:?}");
    }
    for timestamp in ["", "+1788000000", " 1788000000", "1788000000.0", "9".repeat(30).as_str()] {
        let bad = Received { timestamp, ..received(&good) };
        let opened = JOSE.open(&keys, &bad, NOW);
        assert_eq!(opened, Err(SealError::Header(TIMESTAMP_HEADER)), "{timestamp:?}");
    }
}

#[test]
fn while_keys_rotate_either_side_may_be_first() {
    for suite in [JOSE, GM] {
        let old = key(suite, "k1", 'L');
        let new = key(suite, "k2", 'M');
        let both = [new.clone(), old.clone()];
        // The sender has the new key already: sealed with it, signed with both.
        let sealed = seal(suite, &both);
        assert_eq!(sealed.signature.split(' ').count(), 2);
        assert!(open(suite, std::slice::from_ref(&new), &sealed).is_ok());
        let opened = suite.open(&[old.clone(), new.clone()], &received(&sealed), NOW);
        assert_eq!(opened.map(|opened| opened.key), Ok("k2".to_owned()));
        // A receiver without the new key believes it and cannot read it.
        let unread = open(suite, std::slice::from_ref(&old), &sealed);
        assert_eq!(unread, Err(SealError::Decryption));
        // The sender has the old one still.
        let sealed = seal(suite, std::slice::from_ref(&old));
        assert!(open(suite, &both, &sealed).is_ok());
        // Once the old key is retired it opens nothing.
        assert_eq!(open(suite, &[new], &sealed), Err(SealError::Signature));
    }
}

#[test]
fn a_key_that_does_not_fit_is_refused_by_what_is_wrong_with_it() {
    let parse = |signing: &str, encryption: &str| SealKey::parse("k", signing, encryption);
    assert_eq!(parse("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", A256), Err(KeyError::Signing));
    assert_eq!(parse("whsec_AAAA", A256), Err(KeyError::Signing));
    assert_eq!(parse("whsec_???", A256), Err(KeyError::Signing));
    assert_eq!(parse(SIGNING, "A A"), Err(KeyError::Encryption));
    assert!(parse(&format!("{SIGNING}\n"), &format!("{A256}\n")).is_ok());
    let short = parse(SIGNING, SM4).unwrap();
    let message = Message { id: "i", timestamp: NOW, nonce: [0; NONCE_BYTES], plain: b"" };
    let sealed = JOSE.seal(&[short], &message);
    assert!(matches!(sealed, Err(SealError::Key(KeyError::Length { .. }))), "{sealed:?}");
    assert_eq!(JOSE.seal(&[], &message), Err(SealError::NoKey));
    let bad = Message { id: "a.b", ..message };
    let good = parse(SIGNING, A256).unwrap();
    let shown = format!("{good:?}");
    assert_eq!(shown, r#"SealKey { id: "k", .. }"#);
    assert_eq!(JOSE.seal(&[good], &bad), Err(SealError::Header(ID_HEADER)));
}

#[test]
fn suites_are_found_by_name() {
    assert_eq!(suite("jose").map(Suite::name), Some("jose"));
    assert_eq!(suite("gm").map(Suite::name), Some("gm"));
    assert!(suite("rot13").is_none());
}
