import Foundation

/// A category of notifications, and whether they are wanted.
public struct PushCategory: Codable, Equatable, Sendable {
    public let key: String
    public let name: String
    public let description: String
    public let chosen: Bool
}

/// This device's subscription to a channel. Make one for the app.
///
/// Every change is stored first. If the service cannot be reached, the call throws an error with
/// `willRetry`, and the change is sent again: after a pause, when the app becomes active, and at its
/// next start.
public actor PushClient {
    private struct Registered: Decodable { let subscriptionId: String }
    private struct Preferences: Decodable { let categories: [PushCategory] }
    private struct Joined: Decodable { let name: String }
    private struct Refusal {
        let parts: Set<Part>
        let error: PushError
    }

    /// The version of this package.
    public static let version = "1.0.0"

    /// Reports what happened to notifications.
    public nonisolated let reports: PushReports

    private let service: Service
    private let sendsLocale: Bool
    private let onError: @Sendable (PushError) -> Void
    private var kept: Kept<PushState>
    private var retries: Retries
    private var queue = Queue()
    private var isRegistered = false // since the app started

    /// `service` is the address of pushsvc, and `channel` the channel's id.
    ///
    /// - Parameters:
    ///   - sendsLocale: registers the device's time zone and language.
    ///   - onError: gets the errors of what no call waits for, such as a login that was stored
    ///     without a network and is refused later.
    public init(
        service: URL, channel: String, store: any PushStore = defaultStore(), sendsLocale: Bool = false,
        onError: @escaping @Sendable (PushError) -> Void = { _ in }
    ) {
        self.init(service, channel, store, sendsLocale, onError, sleep: nil)
    }

    init(
        _ service: URL, _ channel: String, _ store: any PushStore, _ sendsLocale: Bool,
        _ onError: @escaping @Sendable (PushError) -> Void, sleep: Sleep?
    ) {
        self.service = Service(address: service, channel: channel, timeout: 10)
        self.sendsLocale = sendsLocale
        self.onError = onError
        kept = Kept(store, "subscription-\(channel)")
        retries = Retries(sleep)
        reports = PushReports(service, store, sleep: sleep)
    }

    /// The keychain, or a file where there is none.
    public static func defaultStore() -> any PushStore {
        #if canImport(Security)
        KeychainStore()
        #else
        FileStore()
        #endif
    }

    // MARK: - The subscription

    /// Call this whenever iOS passes a token to the app. It subscribes the device, unless
    /// `unsubscribe()` was called before. A changed token keeps the subscription with its history.
    public func register(_ deviceToken: Data) async throws {
        let token = deviceToken.map { String(format: "%02x", $0) }.joined()
        try await change { $0.token = token }
    }

    /// Whether the service knows this device as subscribed.
    public var isSubscribed: Bool {
        get throws {
            let state = try state()
            return state.isWanted && state.registered != nil
        }
    }

    /// The id of this device's subscription, with which a backend can send to it.
    public var subscriptionId: String? {
        get throws { try isSubscribed ? state().subscriptionId : nil }
    }

    /// Ends the subscription until `subscribe()` is called, even if the app is started again.
    public func unsubscribe() async throws {
        try await change {
            $0.isWanted = false
            $0.isLeaving = true
        }
    }

    /// Subscribes the device again after `unsubscribe()`.
    public func subscribe() async throws {
        let isAgain = try !state().isWanted
        if isAgain { isRegistered = false }
        try await change {
            $0.isWanted = true
            $0.isLeaving = false
        }
    }

    /// Sends what is left. Call it when the app becomes active.
    public func resume() async {
        do { try await change { _ in } } catch {
            if let error = error as? PushError, !error.willRetry { onError(error) }
        }
        await reports.send()
    }

    private func retry() async {
        retries.begin()
        await resume()
    }

    // MARK: - The user

    /// Links the device to the signed-in user. Your backend creates `identityToken` for the user.
    /// Call this at every start while the user is signed in.
    public func login(_ externalId: String, identityToken: String? = nil) async throws {
        try await identify(Login(externalId: externalId, identityToken: identityToken))
    }

    /// Unlinks the device from the user. The device stays subscribed.
    public func logout() async throws {
        try await identify(Login(externalId: nil, identityToken: nil))
    }

    private func identify(_ login: Login) async throws {
        let state = try state()
        let isKnown = state.said.map { $0.externalId == login.externalId } ?? false
        if isKnown, state.unsaid.login == nil { return }
        try await change(.login) { $0.unsaid.login = login }
    }

    // MARK: - What is known about the device

    /// Replaces all attributes.
    public func setAttributes(_ attributes: [String: PushValue]) async throws {
        try await change(.attributes) { $0.unsaid.attributes = attributes }
    }

    public func addTags(_ tags: [String]) async throws {
        try await change(.tags) { $0.unsaid.add(tags) }
    }

    public func removeTags(_ tags: [String]) async throws {
        try await change(.tags) { $0.unsaid.remove(tags) }
    }

    /// The channel's categories, and which of them are wanted.
    public func preferences() async throws -> [PushCategory] { try await prefer(nil) }

    /// Chooses categories by their keys. Nil returns to the default; others do not change. Choices
    /// that cannot be sent now are not stored.
    @discardableResult
    public func setPreferences(_ choices: [String: Bool?]) async throws -> [PushCategory] {
        try await prefer(.object(choices.mapValues { $0.map(JSON.flag) ?? .null }))
    }

    private func prefer(_ choices: JSON?) async throws -> [PushCategory] {
        try await change { _ in }
        let state = try state()
        guard state.isWanted, let address = state.registered else { throw PushError(.notSubscribed) }
        var body = device(address, state)
        body["choices"] = choices
        return try await ask("preferences", .object(body), as: Preferences.self).categories
    }

    // MARK: - Trying it

    /// Makes this a test device of the channel. `invitation` is the fragment of the link in a QR code
    /// that the console shows for the app. An invitation that cannot be sent now is not stored. If
    /// the error is `notSubscribed`, call this again after `register(_:)`.
    public func joinAsTestDevice(_ invitation: String) async throws {
        try await change { _ in }
        guard let id = try subscriptionId else { throw PushError(.notSubscribed) }
        let body: JSON = .object(["invitation": .text(invitation), "subscription_id": .text(id)])
        _ = try await ask("test-device/\(service.channel ?? "")/join", body, as: Joined.self)
    }

    /// Sends nothing again.
    private func ask<Answer: Decodable & Sendable>(
        _ path: String, _ body: JSON, as type: Answer.Type
    ) async throws -> Answer {
        do { return try await service.post(path, body, as: type) } catch let error as PushError {
            throw PushError(error.code, problem: error.problem)
        }
    }

    // MARK: - Telling the service

    /// Stores the change and sends it. A refusal of another part than `own` goes to `onError`.
    private func change(_ own: Part? = nil, _ change: (inout PushState) -> Void) async throws {
        var state = try state()
        change(&state)
        try kept.write(state)
        var thrown: PushError?
        for refusal in try await queue.run({ try await self.synchronize() }).value {
            if let own, refusal.parts.contains(own) { thrown = refusal.error } else { onError(refusal.error) }
        }
        if let thrown { throw thrown }
    }

    private func state() throws -> PushState { try kept.read { PushState() } }

    private func update(_ change: (inout PushState) -> Void) throws {
        var state = try state()
        change(&state)
        try kept.write(state)
    }

    private func synchronize() async throws -> [Refusal] {
        let state = try state()
        let isDue = state.isWanted ? isRegistrationDue(state) : state.isLeaving
        guard isDue else { return [] }
        if retries.isHeldBack { throw PushError(.unreachable, willRetry: true) }
        do {
            let refusals = state.isWanted ? try await join() : try await leave()
            retries.succeeded()
            return refusals
        } catch let error as PushError {
            if error.willRetry { retries.failed(error) { [weak self] in await self?.retry() } }
            throw error
        }
    }

    /// At every start, because a subscription that expired becomes active again.
    private func isRegistrationDue(_ state: PushState) -> Bool {
        guard let token = state.token else { return false }
        return !isRegistered || token != state.registered || !state.unsaid.isEmpty
    }

    /// Registers the device. What the service refuses for good must not cost the subscription, which
    /// is then registered without it.
    private func join() async throws -> [Refusal] {
        var refusals: [Refusal] = []
        var isLocaleRefused = false
        while true {
            let state = try state()
            guard let token = state.token else { return refusals }
            let said = state.unsaid
            var body = device(token, state).merging(said.json) { $1 }
            if let before = state.registered { body["previous_endpoint"] = .text(before) }
            if sendsLocale, !isLocaleRefused { body.merge(locale) { $1 } }
            do {
                let answer = try await service.post("subscribe", .object(body), as: Registered.self)
                isRegistered = true
                try update { $0.note(answer.subscriptionId, token, said) }
                return refusals
            } catch let error as PushError where !error.willRetry && error.code == .refused {
                let parts = Part.refused(by: error.problem).filter { !$0.fields.isDisjoint(with: body.keys) }
                guard !parts.isEmpty else { throw error }
                if parts.contains(.locale) { isLocaleRefused = true }
                try update { $0.unsaid.forget(said, parts) }
                refusals.append(Refusal(parts: parts, error: error))
            }
        }
    }

    private func leave() async throws -> [Refusal] {
        let state = try state()
        if let address = state.registered ?? state.token {
            try await service.post("unsubscribe", .object(device(address, state)))
        }
        try update {
            $0.isLeaving = false
            $0.said = nil
        }
        return []
    }

    /// The token and, as the proof that it belongs to this app, `auth`. Tokens are not secret.
    private func device(_ address: String, _ state: PushState) -> [String: JSON] {
        ["platform": .text("ios"), "provider_token": .text(address), "auth": .text(state.auth)]
    }

    private var locale: [String: JSON] {
        ["timezone": .text(TimeZone.current.identifier), "language": .text(Locale.preferredLanguages.first ?? "und")]
    }
}

extension PushState {
    /// The service knows the device by `token` as `id`, and was told `said`.
    fileprivate mutating func note(_ id: String, _ token: String, _ said: Unsaid) {
        if let login = said.login {
            self.said = Login(externalId: login.externalId, identityToken: nil)
        } else if id != subscriptionId {
            self.said = nil // another subscription, which belongs to nobody
        }
        subscriptionId = id
        registered = token
        unsaid.forget(said)
    }
}
