//! The certificate authorities that the HTTPS clients trust.

use std::{fmt, sync::Arc};

use rustls::{RootCertStore, pki_types::CertificateDer};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

/// Mozilla's certificate authorities, and those that the operator adds.
#[derive(Clone, Default)]
pub struct Authorities(Option<Arc<Vec<Certificate<'static>>>>);

/// The file contains no certificate, or an unreadable one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAuthorities {
    #[error("contains no PEM certificate (-----BEGIN CERTIFICATE-----)")]
    Empty,
    #[error("is not a PEM file: {0}")]
    NoPem(String),
    #[error("certificate {0} of the file is unreadable: {1}")]
    Unreadable(usize, String),
}

impl Authorities {
    /// The certificates of a PEM file in addition to Mozilla's. Other PEM items in the file are ignored.
    pub fn with(pem: &[u8]) -> Result<Self, InvalidAuthorities> {
        let mut added = Vec::new();
        for item in parse_pem(pem) {
            if let PemItem::Certificate(certificate) =
                item.map_err(|error| InvalidAuthorities::NoPem(error.to_string()))?
            {
                added.push(certificate);
            }
        }
        if added.is_empty() {
            return Err(InvalidAuthorities::Empty);
        }
        // The client silently ignores certificates that it cannot read.
        for (index, certificate) in added.iter().enumerate() {
            let read = RootCertStore::empty().add(CertificateDer::from(certificate.der()));
            read.map_err(|error| InvalidAuthorities::Unreadable(index + 1, error.to_string()))?;
        }
        let public = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter();
        added.extend(public.map(|der| Certificate::from_der(der.as_ref()).to_owned()));
        Ok(Self(Some(Arc::new(added))))
    }

    /// The TLS settings for an HTTP client.
    pub fn tls(&self) -> TlsConfig {
        let roots = self.0.as_ref().map_or(RootCerts::WebPki, |all| RootCerts::Specific(Arc::clone(all)));
        TlsConfig::builder().root_certs(roots).build()
    }
}

impl fmt::Debug for Authorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Authorities").field(&self.0.as_ref().map_or(0, |all| all.len())).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_must_contain_readable_certificates() {
        let with = |text: &str| Authorities::with(text.as_bytes()).map(drop);
        assert_eq!(with(""), Err(InvalidAuthorities::Empty));
        assert_eq!(with("a certificate"), Err(InvalidAuthorities::Empty));
        let odd = "-----BEGIN CERTIFICATE-----\naHVudGVyMg==\n-----END CERTIFICATE-----\n";
        assert!(matches!(with(odd), Err(InvalidAuthorities::Unreadable(1, _))), "{:?}", with(odd));
        let broken = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
        assert!(matches!(with(broken), Err(InvalidAuthorities::NoPem(_))), "{:?}", with(broken));
    }

    #[test]
    fn the_certificates_of_the_file_are_added_to_the_public_ones() {
        let public = webpki_root_certs::TLS_SERVER_ROOT_CERTS;
        let one = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap().cert.pem();
        let all = Authorities::with(format!("{one}{one}").as_bytes()).unwrap();
        assert_eq!(format!("{all:?}"), format!("Authorities({})", public.len() + 2));
    }
}
