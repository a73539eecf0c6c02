import Foundation

/// A value of `attributes`.
public enum PushValue: Codable, Equatable, Sendable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral
{
    case text(String)
    case number(Double)

    public init(stringLiteral value: String) { self = .text(value) }
    public init(integerLiteral value: Int) { self = .number(Double(value)) }
    public init(floatLiteral value: Double) { self = .number(value) }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let text = try? container.decode(String.self) {
            self = .text(text)
        } else {
            self = .number(try container.decode(Double.self))
        }
    }

    public func encode(to encoder: any Encoder) throws { try json.encode(to: encoder) }

    var json: JSON {
        switch self {
        case .text(let value): .text(value)
        case .number(let value): .number(value)
        }
    }
}

struct Login: Codable, Equatable {
    /// Nil signs out.
    let externalId: String?
    let identityToken: String?
}

/// What the service was not told yet.
struct Unsaid: Codable, Equatable {
    var login: Login?
    var attributes: [String: PushValue]?
    var added: Set<String> = []
    var removed: Set<String> = []

    var isEmpty: Bool { self == Unsaid() }

    /// The last word on a tag holds.
    mutating func add(_ tags: [String]) {
        added.formUnion(tags)
        removed.subtract(tags)
    }

    mutating func remove(_ tags: [String]) {
        removed.formUnion(tags)
        added.subtract(tags)
    }

    /// Keeps what was changed after `said` was sent.
    mutating func forget(_ said: Unsaid, _ parts: Set<Part> = Set(Part.allCases)) {
        if parts.contains(.login), login == said.login { login = nil }
        if parts.contains(.attributes), attributes == said.attributes { attributes = nil }
        if parts.contains(.tags) {
            added.subtract(said.added)
            removed.subtract(said.removed)
        }
    }

    var json: [String: JSON] {
        var fields: [String: JSON] = [:]
        if let login {
            fields["external_id"] = login.externalId.map(JSON.text) ?? .null
            fields["identity_token"] = login.identityToken.map(JSON.text)
        }
        if let attributes { fields["attributes"] = .object(attributes.mapValues(\.json)) }
        if !added.isEmpty { fields["add_tags"] = .texts(added) }
        if !removed.isEmpty { fields["remove_tags"] = .texts(removed) }
        return fields
    }
}

/// A part of a registration that can be refused without the rest.
enum Part: CaseIterable {
    case login, attributes, tags, locale

    var fields: Set<String> {
        switch self {
        case .login: ["external_id", "identity_token"]
        case .attributes: ["attributes"]
        case .tags: ["add_tags", "remove_tags"]
        case .locale: ["timezone", "language"]
        }
    }

    private static let ofLogin: Set = ["identity_refused", "identity_off", "too_many_devices"]

    /// The parts because of which the service refused a registration.
    static func refused(by problem: Problem?) -> Set<Part> {
        if ofLogin.contains(problem?.code ?? "") { return [.login] }
        let named = Set((problem?.errors ?? []).map { String($0.attr.prefix { $0 != "." }) })
        return Set(allCases.filter { !$0.fields.isDisjoint(with: named) })
    }
}

struct PushState: Codable {
    /// 16 random bytes that only this app and the service know.
    let auth: String
    /// What iOS gave last, and what the service knows.
    var token: String?
    var registered: String?
    var subscriptionId: String?
    var isWanted = true
    /// The service was not told yet that the device is not wanted.
    var isLeaving = false
    var unsaid = Unsaid()
    /// The login that the service knows.
    var said: Login?

    init() {
        let bytes = Data((0..<16).map { _ in UInt8.random(in: .min ... .max) })
        auth = bytes.base64EncodedString()
            .replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
            .replacingOccurrences(of: "=", with: "")
    }
}
