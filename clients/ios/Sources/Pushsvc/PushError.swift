/// Why a call failed.
public struct PushError: Error, Sendable {
    public enum Code: String, Sendable {
        /// The service cannot be reached, or asked to be called later.
        case unreachable
        /// The service refused the request. `problem` has the reason.
        case refused
        /// The device is not subscribed: iOS has given no token yet, or `unsubscribe()` was called.
        case notSubscribed
        /// The store cannot be read or written, for example before the first unlock after a restart.
        case storage
    }

    public let code: Code

    /// What the service answered.
    public let problem: Problem?

    /// The change is stored and is sent again later. Nothing needs to be done.
    public let willRetry: Bool

    /// The seconds of the response's `Retry-After`.
    let retryAfter: Double?

    init(_ code: Code, problem: Problem? = nil, willRetry: Bool = false, retryAfter: Double? = nil) {
        self.code = code
        self.problem = problem
        self.willRetry = willRetry
        self.retryAfter = retryAfter
    }
}

/// An error of the service (RFC 9457). The service's `/docs/errors` lists the codes.
public struct Problem: Codable, Equatable, Sendable {
    public struct Detail: Codable, Equatable, Sendable {
        /// The path of the refused field, such as `add_tags.0`.
        public let attr: String
        public let code: String
        public let detail: String?
    }

    public let status: Int
    public let code: String
    public let detail: String?
    public let errors: [Detail]?
}
