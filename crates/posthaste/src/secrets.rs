//! Secrets: followed where they are referred to, sealed where they are kept. And the judge of URLs.
//!
//! What is sealed is `sealed:v1:` and the base64 of nonce and ciphertext: AES-256-GCM-SIV under the master key, bound to
//! its purpose by the associated data. A secret never appears in an error or a log line.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use aws_lc_rs::{
    aead::{AES_256_GCM_SIV, Aad, Nonce, RandomizedNonceKey},
    rand,
};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD},
};
use posthaste_adapters::guard::{AddressRefusal, Guard, UrlRefusal};
use posthaste_engine::ports::{Secrets, UrlJudge};
use zeroize::Zeroizing;

use crate::config::follow;

/// What a sealed secret begins with.
pub(crate) const SEALED_PREFIX: &str = "sealed:";

const VERSION_PREFIX: &str = "sealed:v1:";

/// What the ciphertext is bound to.
const PURPOSE: &[u8] = b"posthaste secret v1";

const NONCE_BYTES: usize = 12;
const KEY_BYTES: usize = 32;

/// The master key's bytes; wiped when dropped.
pub(crate) type MasterKeyBytes = Zeroizing<[u8; KEY_BYTES]>;

/// Reads a master key: 32 bytes as base64 (of either alphabet, padded or not) or as 64 hexadecimal digits.
///
/// Errors: a sentence that doesn't hold the key.
pub(crate) fn parse_master_key(text: &str) -> Result<MasterKeyBytes, String> {
    let text = text.trim();
    let hex = || {
        let digits: Option<Vec<u8>> =
            text.chars().map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
        digits.filter(|digits| digits.len() == 2 * KEY_BYTES).map(|digits| {
            Zeroizing::new(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect::<Vec<u8>>())
        })
    };
    let base64 = || {
        let engines = [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD];
        engines.iter().find_map(|engine| engine.decode(text).ok()).map(Zeroizing::new)
    };
    let bytes = hex().or_else(base64);
    let key = bytes.and_then(|bytes| <[u8; KEY_BYTES]>::try_from(bytes.as_slice()).ok());
    key.map(Zeroizing::new)
        .ok_or_else(|| "the master key is no base64 or hexadecimal text of 32 bytes".to_owned())
}

/// Opens and seals under one master key.
pub(crate) struct SealedSecrets {
    key: RandomizedNonceKey,
}

impl SealedSecrets {
    /// Under `key`.
    pub(crate) fn new(key: &MasterKeyBytes) -> Self {
        let key = RandomizedNonceKey::new(&AES_256_GCM_SIV, &key[..]).expect("32 bytes are a key of AES-256");
        Self { key }
    }

    fn unseal(&self, sealed: &str) -> Result<String, String> {
        let text = sealed.strip_prefix(VERSION_PREFIX).ok_or("the secret was sealed by a newer version")?;
        let mut bytes = STANDARD_NO_PAD.decode(text).map_err(|_| "the sealed secret is damaged")?;
        if bytes.len() < NONCE_BYTES {
            return Err("the sealed secret is damaged".to_owned());
        }
        let mut secret = bytes.split_off(NONCE_BYTES);
        let nonce = Nonce::try_assume_unique_for_key(&bytes).map_err(|_| "the sealed secret is damaged")?;
        let opened = self.key.open_in_place(nonce, Aad::from(PURPOSE), &mut secret);
        let length =
            opened.map_err(|_| "the secret was sealed under another master key, or is damaged")?.len();
        secret.truncate(length);
        String::from_utf8(secret).map_err(|_| "the sealed secret is damaged".to_owned())
    }
}

impl Secrets for SealedSecrets {
    fn open(&self, stored: &str) -> Result<String, String> {
        if let Some(followed) = follow(stored) {
            return followed;
        }
        if stored.starts_with(SEALED_PREFIX) { self.unseal(stored) } else { Ok(stored.to_owned()) }
    }

    fn seal(&self, secret: &str) -> Result<String, String> {
        if secret.starts_with("env:") || secret.starts_with("file:") {
            return Ok(secret.to_owned());
        }
        if secret.starts_with(SEALED_PREFIX) {
            // Ours, on its way back into the store; anything else of this look is no secret of a provider.
            return self.unseal(secret).map(|_| secret.to_owned());
        }
        let mut sealed = secret.as_bytes().to_vec();
        let nonce = self.key.seal_in_place_append_tag(Aad::from(PURPOSE), &mut sealed);
        let nonce = nonce.map_err(|_| "the secret can't be sealed")?;
        let bytes = [nonce.as_ref().as_slice(), &sealed].concat();
        Ok(format!("{VERSION_PREFIX}{}", STANDARD_NO_PAD.encode(bytes)))
    }
}

/// The file that holds the master key of the store at `store`, unless one is configured.
pub(crate) fn key_file(store: &Path) -> PathBuf {
    let mut path = store.as_os_str().to_owned();
    path.push(".key");
    path.into()
}

/// Whether a key file may be made if it is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissingKey {
    /// Nothing was sealed yet.
    Make,
    /// The store holds what was sealed under the missing key.
    Refuse,
}

/// Reads the key file beside a store, or makes one that only this user can read.
pub(crate) fn read_or_make_key(path: &Path, missing: MissingKey) -> anyhow::Result<MasterKeyBytes> {
    match File::open(path) {
        Ok(mut file) => {
            let mode = file.metadata()?.permissions().mode();
            if mode & 0o077 != 0 {
                tracing::warn!(path = %path.display(), "others can read the master key: chmod 600 it");
            }
            let mut text = Zeroizing::new(String::new());
            file.read_to_string(&mut text)?;
            parse_master_key(&text).map_err(|problem| anyhow::anyhow!("{}: {problem}", path.display()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => match missing {
            MissingKey::Make => make_key(path),
            MissingKey::Refuse => anyhow::bail!(
                "the store holds sealed secrets, and their key {} is missing: bring it back from a backup, or set \
                 POSTHASTE_MASTER_KEY",
                path.display()
            ),
        },
        Err(error) => Err(anyhow::Error::new(error).context(format!("{} can't be read", path.display()))),
    }
}

fn make_key(path: &Path) -> anyhow::Result<MasterKeyBytes> {
    let mut key: MasterKeyBytes = Zeroizing::new([0; KEY_BYTES]);
    rand::fill(&mut key[..]).map_err(|_| anyhow::anyhow!("the system gives no random bytes"))?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{}", Zeroizing::new(STANDARD.encode(&key[..])).as_str())?;
    file.sync_all()?;
    // The name too must survive a loss of power: without the key, sealed secrets are lost.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()?;
    Ok(key)
}

/// A fresh API key: `phk_` and the base64url of 32 random bytes.
pub(crate) fn new_api_key() -> anyhow::Result<String> {
    let mut bytes = Zeroizing::new([0_u8; 32]);
    rand::fill(&mut bytes[..]).map_err(|_| anyhow::anyhow!("the system gives no random bytes"))?;
    Ok(format!("phk_{}", URL_SAFE_NO_PAD.encode(&bytes[..])))
}

/// Whether `text` has the form of an API key.
pub(crate) fn is_api_key(text: &str) -> bool {
    let bytes = text.strip_prefix("phk_").and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
    bytes.is_some_and(|bytes| bytes.len() == 32)
}

/// Judges an endpoint's URL by the guard that judges its address when it is dialled.
pub(crate) struct GuardJudge(pub(crate) Arc<Guard>);

impl UrlJudge for GuardJudge {
    fn check(&self, url: &str) -> Result<(), String> {
        judge_url(&self.0, url)
    }
}

/// Errors: a sentence that says what is wrong and what would be right, without the URL.
pub(crate) fn judge_url(guard: &Guard, url: &str) -> Result<(), String> {
    let Err(refusal) = guard.check_url(url) else { return Ok(()) };
    let remedy = match &refusal {
        UrlRefusal::Address(AddressRefusal::Forbidden(_)) => {
            "; if it is yours, add its network to outbound.private_networks"
        }
        UrlRefusal::Address(AddressRefusal::PlainHttp) => {
            ", or add the network to outbound.private_networks, or set outbound.allow_http"
        }
        UrlRefusal::Destination => "; add it to outbound.destinations",
        UrlRefusal::Userinfo => "; give credentials as headers",
        UrlRefusal::Malformed(_)
        | UrlRefusal::TooLong(_)
        | UrlRefusal::Scheme
        | UrlRefusal::Fragment
        | UrlRefusal::Port
        | UrlRefusal::Host
        | UrlRefusal::Address(AddressRefusal::NoAddress) => "",
    };
    Err(format!("{refusal}{remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(byte: u8) -> SealedSecrets {
        SealedSecrets::new(&Zeroizing::new([byte; KEY_BYTES]))
    }

    #[test]
    fn r_g2_a_sealed_secret_opens_under_its_own_key_only() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let sealed = secrets(1).seal(secret).unwrap();
        assert!(sealed.starts_with("sealed:v1:") && !sealed.contains("MfKQ"), "{sealed}");
        assert_ne!(sealed, secrets(1).seal(secret).unwrap(), "each has a nonce of its own");
        assert_eq!(Ok(secret.to_owned()), secrets(1).open(&sealed));
        assert_eq!(Ok(sealed.clone()), secrets(1).seal(&sealed), "sealed once is sealed");
        let refused = secrets(2).open(&sealed).unwrap_err();
        assert_eq!("the secret was sealed under another master key, or is damaged", refused);
        assert!(secrets(2).seal(&sealed).is_err());
        for at in [SEALED_PREFIX.len() + 3, sealed.len() - 1] {
            let mut bent = sealed.clone().into_bytes();
            bent[at] = if bent[at] == b'A' { b'B' } else { b'A' };
            assert!(secrets(1).open(&String::from_utf8(bent).unwrap()).is_err());
        }
        for text in ["sealed:", "sealed:v1:", "sealed:v1:AAAA", "sealed:v2:AAAA", "sealed:v1:\u{e9}"] {
            assert!(secrets(1).open(text).is_err(), "{text}");
        }
    }

    #[test]
    fn r_g2_references_stay_references() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        std::fs::write(&path, "whsec_AAAA\n").unwrap();
        let reference = format!("file:{}", path.display());
        assert_eq!(Ok(reference.clone()), secrets(1).seal(&reference));
        assert_eq!(Ok("whsec_AAAA".to_owned()), secrets(1).open(&reference));
        assert!(secrets(1).open("env:POSTHASTE_TEST_NOT_SET").unwrap_err().contains("is not set"));
        assert_eq!(Ok("plain".to_owned()), secrets(1).open("plain"));
    }

    #[test]
    fn r_g2_a_key_file_is_made_once_and_for_this_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = key_file(&folder.path().join("a.db"));
        let refused = read_or_make_key(&path, MissingKey::Refuse).unwrap_err().to_string();
        assert!(refused.contains("a.db.key is missing"), "{refused}");
        let made = read_or_make_key(&path, MissingKey::Make).unwrap();
        assert_eq!(made, read_or_make_key(&path, MissingKey::Refuse).unwrap());
        assert_eq!(0o600, std::fs::metadata(&path).unwrap().permissions().mode() & 0o777);
    }

    #[test]
    fn master_keys_are_read_in_the_spellings_that_people_use() {
        let bytes = [0xFB; KEY_BYTES];
        let hex = "fb".repeat(KEY_BYTES);
        for text in [STANDARD.encode(bytes), URL_SAFE_NO_PAD.encode(bytes), hex.clone(), format!(" {hex}\n")]
        {
            assert_eq!(bytes, *parse_master_key(&text).unwrap(), "{text}");
        }
        for text in ["", "short", &STANDARD.encode([1; 31]), &"z".repeat(64)] {
            assert!(parse_master_key(text).is_err(), "{text}");
        }
    }

    #[test]
    fn api_keys_have_one_form() {
        let key = new_api_key().unwrap();
        assert!(is_api_key(&key) && key.len() == 47, "{key}");
        for text in ["", "phk_", "phk_AAAA", &key[4..], &format!("{key}A")] {
            assert!(!is_api_key(text), "{text}");
        }
    }
}
