//! What an operator may do about a server that gives no good answer, by the kind of failure.

use crate::rest_client::{RestError, TlsTrouble};
use crate::runtime::servers::{ServerFailure, ServerStatus};
use hintd_client::shown_address;
use hyper::StatusCode;
use std::io::ErrorKind;

/// A server's failure as status, log and doctor tell it.
pub(crate) fn server_failure<N: std::error::Error + 'static>(error: &RestError<N>) -> ServerFailure {
    let status = match error {
        RestError::Status { .. } | RestError::TooLarge { .. } | RestError::Nonsense { .. } => ServerStatus::WrongAnswer,
        RestError::Connect { .. }
        | RestError::Tls { .. }
        | RestError::Late { .. }
        | RestError::Broken { .. }
        | RestError::Address(_) => ServerStatus::Silent,
    };
    ServerFailure { status, reason: error.reason(), error: error.to_string(), advice: advice(error) }
}

fn advice<N: std::error::Error + 'static>(error: &RestError<N>) -> String {
    let fixed = match error {
        RestError::Connect { source, .. } => unreachable(source),
        RestError::Tls { source, .. } => untrusted(TlsTrouble::of(source)),
        RestError::Late { .. } => {
            "The host is down, a firewall drops what is sent there, or the server is too busy: try curl from here; raise \
             timeout where it is only slow."
        }
        RestError::Broken { .. } => {
            "What answers there may speak no HTTP (the port of RPC?), or wants TLS: then write https:// in its URL."
        }
        RestError::Status { status, location, .. } => return refused(*status, location.as_deref()),
        RestError::TooLarge { .. } => "Raise answer_bytes of its section and restart hintd.",
        RestError::Nonsense { .. } => {
            "Another server answers there, a proxy, or a login page: see with curl what it is, and correct its URL."
        }
        RestError::Address(_) => "Correct its URL.",
    };
    fixed.to_owned()
}

fn unreachable(source: &std::io::Error) -> &'static str {
    match source.kind() {
        ErrorKind::ConnectionRefused => "Nothing listens there: start the server, or correct host and port of its URL.",
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
            "There is no way there from this machine: look at its routes, at firewalls, and whether the host is up."
        }
        ErrorKind::PermissionDenied => {
            "This machine forbids the connection: look at its firewall, and at IPAddressAllow of hintd's unit."
        }
        ErrorKind::TimedOut => "The host is down, or a firewall drops what is sent there.",
        // Names that are not known have no kind of their own.
        _ if source.to_string().contains("lookup") => {
            "Nobody here knows that name: correct the URL, or the name in DNS or /etc/hosts."
        }
        _ => "Check that it runs, its address, and the way there from this machine.",
    }
}

fn untrusted(trouble: TlsTrouble) -> &'static str {
    match trouble {
        TlsTrouble::NoTls => "Write http:// in its URL, or the port of its https interface.",
        TlsTrouble::Untrusted => {
            "Name the certificate of the authority that signed the server's in ca_file of its section (PEM), and restart hintd."
        }
        TlsTrouble::Authority => {
            "Give the server a certificate of its own, signed by an authority, and name that authority's certificate in ca_file; \
             a self-signed one that is marked CA:TRUE can't be both."
        }
        TlsTrouble::Name => {
            "Write a host in its URL that the certificate names, or give the server one that names this host."
        }
        TlsTrouble::Expired => "Renew the server's certificate, or set this machine's clock.",
        TlsTrouble::Other => {
            "Look at the server's certificate (openssl s_client -connect HOST:PORT), and at ca_file of its section."
        }
    }
}

fn refused(status: StatusCode, location: Option<&str>) -> String {
    let login = "hintd names itself by user.name and can't log in";
    match status.as_u16() {
        300..=399 => match location {
            Some(location) => format!(
                "It sends hintd to {}: write that server's address in its URL, or, where that is a login page, let hintd's machine in \
                 without one; hintd follows no redirection.",
                place(location)
            ),
            None => "It sends hintd elsewhere and does not say where: see with curl what answers there.".to_owned(),
        },
        401 => format!(
            "It wants a login (Kerberos, or a proxy before it), and {login}: allow user.name on its web interface for hintd's machine, \
             or feed hintd instead (docs/yarn.md)."
        ),
        403 => format!(
            "It forbids this to the user that hintd names: set user of its section; where Kerberos or a proxy stands before it, {login}."
        ),
        407 => "A proxy stands between and wants a login: let hintd reach the server without it.".to_owned(),
        404 => "It has no such page: is it a server of this kind, and the port of its web interface?".to_owned(),
        429 => "It has too much to do: raise poll of its section.".to_owned(),
        500..=599 => "The server, or a proxy before it, has trouble: look at its log.".to_owned(),
        _ => "See with curl what answers there, and correct its URL.".to_owned(),
    }
}

/// Scheme, host and path of where a server sends us: what follows `?` may be a secret, and a stranger wrote all of it.
pub(crate) fn place(location: &str) -> String {
    const SHOWN: usize = 120;
    let plain = location.split(['?', '#']).next().unwrap_or_default();
    shown_address(plain).chars().take(SHOWN).collect::<String>().escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio_rustls::rustls::{self, CertificateError, InvalidMessage};

    type Error = RestError<std::fmt::Error>;

    fn of(error: Error) -> ServerFailure {
        server_failure(&error)
    }

    fn status(status: StatusCode, location: Option<&str>) -> ServerFailure {
        let location = location.map(str::to_owned);
        of(Error::Status { path: "/x".into(), status, body: "<html>".into(), location })
    }

    #[test]
    fn a_connection_that_fails_is_mended_by_why_it_does() {
        let advice = |source: std::io::Error| of(Error::Connect { address: "rm:1".into(), source });
        for (kind, said) in [
            (ErrorKind::ConnectionRefused, "Nothing listens there"),
            (ErrorKind::HostUnreachable, "no way there"),
            (ErrorKind::NetworkUnreachable, "no way there"),
            (ErrorKind::PermissionDenied, "IPAddressAllow"),
            (ErrorKind::TimedOut, "firewall drops"),
            (ErrorKind::ConnectionReset, "Check that it runs"),
        ] {
            let failure = advice(kind.into());
            assert!(failure.advice.contains(said), "{kind}: {failure:?}");
            assert_eq!(failure.status, ServerStatus::Silent);
        }
        let unknown = "failed to lookup address information: Name or service not known";
        assert!(advice(std::io::Error::other(unknown)).advice.contains("knows that name"));
        let late = of(Error::Late { path: "/x".into(), seconds: 5.0 });
        assert!(late.advice.contains("timeout") && late.status == ServerStatus::Silent, "{late:?}");
    }

    #[test]
    fn who_answers_and_not_what_was_asked_is_not_silent() {
        let html = of(Error::Nonsense { path: "/x".into(), source: std::fmt::Error });
        assert!(html.advice.contains("login page"), "{html:?}");
        assert_eq!(html.status, ServerStatus::WrongAnswer);
        for (code, said) in [
            (StatusCode::UNAUTHORIZED, "Kerberos"),
            (StatusCode::FORBIDDEN, "set user"),
            (StatusCode::NOT_FOUND, "no such page"),
            (StatusCode::BAD_GATEWAY, "look at its log"),
        ] {
            let failure = status(code, None);
            assert!(failure.advice.contains(said), "{code}: {failure:?}");
            assert_eq!(failure.status, ServerStatus::WrongAnswer);
        }
    }

    #[test]
    fn a_redirection_names_where_to_and_no_secret_of_it() {
        let failure = status(StatusCode::FOUND, Some("https://ann:hunter2@sso.example/login\u{7}?ticket=hunter3"));
        assert!(
            failure.advice.contains("It sends hintd to https://(left out)@sso.example/login\\u{7}:"),
            "{failure:?}"
        );
        assert!(!failure.advice.contains("hunter"), "{failure:?}");
        assert!(status(StatusCode::FOUND, None).advice.contains("does not say where"));
    }

    #[test]
    fn tls_that_fails_is_said_in_words_and_mended_by_ca_file_where_that_helps() {
        let tls = |error: rustls::Error| {
            of(Error::Tls { address: "rm:8090".into(), source: std::io::Error::new(ErrorKind::InvalidData, error) })
        };
        let certificate = |why| tls(rustls::Error::InvalidCertificate(why));
        let untrusted = certificate(CertificateError::UnknownIssuer);
        assert_eq!(untrusted.error, "no TLS with rm:8090: its certificate is signed by nobody that is trusted");
        assert!(untrusted.advice.contains("in ca_file of its section"), "{untrusted:?}");
        assert!(certificate(CertificateError::Expired).advice.contains("Renew"));
        assert!(certificate(CertificateError::NotValidForName).advice.contains("that the certificate names"));
        #[derive(Debug)]
        struct CaUsedAsEndEntity;
        impl std::fmt::Display for CaUsedAsEndEntity {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("CaUsedAsEndEntity")
            }
        }
        impl std::error::Error for CaUsedAsEndEntity {}
        let other = rustls::OtherError(std::sync::Arc::new(CaUsedAsEndEntity));
        let authority = certificate(CertificateError::Other(other));
        assert!(authority.error.ends_with("a certificate authority's own, which no server may show"), "{authority:?}");
        assert!(authority.advice.contains("ca_file"), "{authority:?}");
        let plain = tls(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType));
        assert!(plain.advice.contains("Write http://"), "{plain:?}");
    }
}
