import Foundation

/// Keeps the kit's data between starts of the app. Calls come from one `PushClient` at a time.
public protocol PushStore: Sendable {
    /// The data of this name, or nil if there is none. Throws if that cannot be known now.
    func read(_ name: String) throws -> Data?
    func write(_ data: Data, _ name: String) throws
}

/// A file for each name. Give the app and its extension different directories.
public struct FileStore: PushStore {
    private let directory: URL

    /// By default, a directory in Application Support.
    public init(directory: URL? = nil) {
        let base = FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask)[0]
        self.directory = directory ?? base.appendingPathComponent("pushsvc", isDirectory: true)
    }

    public func read(_ name: String) throws -> Data? {
        let file = directory.appendingPathComponent(name)
        guard FileManager.default.fileExists(atPath: file.path) else { return nil }
        return try Data(contentsOf: file)
    }

    public func write(_ data: Data, _ name: String) throws {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        #if canImport(Darwin)
        // A backup would give the subscription of this device to another one.
        var kept = directory
        var values = URLResourceValues()
        values.isExcludedFromBackup = true
        try kept.setResourceValues(values)
        let options: Data.WritingOptions = [.atomic, .completeFileProtectionUntilFirstUserAuthentication]
        #else
        let options: Data.WritingOptions = .atomic
        #endif
        try data.write(to: directory.appendingPathComponent(name), options: options)
    }
}

#if canImport(Security)
import Security

/// An entry of the keychain for each name. It stays when the app is deleted, so an app that is
/// installed again keeps its subscription. Other devices and backups never get it.
public struct KeychainStore: PushStore {
    private struct Failure: Error { let status: OSStatus }

    private let service: String

    public init(service: String = "pushsvc") { self.service = service }

    public func read(_ name: String) throws -> Data? {
        var query = entry(name)
        query[kSecReturnData as String] = true
        var found: AnyObject?
        let status = SecItemCopyMatching(NSDictionary(dictionary: query) as CFDictionary, &found)
        if status == errSecItemNotFound { return nil }
        guard status == errSecSuccess else { throw Failure(status: status) }
        return found as? Data
    }

    public func write(_ data: Data, _ name: String) throws {
        let change: [String: Any] = [
            kSecValueData as String: data,
            kSecAttrAccessible as String: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
        ]
        let query = entry(name)
        var status = SecItemUpdate(
            NSDictionary(dictionary: query) as CFDictionary, NSDictionary(dictionary: change) as CFDictionary)
        if status == errSecItemNotFound {
            let added = query.merging(change) { $1 }
            status = SecItemAdd(NSDictionary(dictionary: added) as CFDictionary, nil)
        }
        guard status == errSecSuccess else { throw Failure(status: status) }
    }

    private func entry(_ name: String) -> [String: Any] {
        [
            kSecClass as String: kSecClassGenericPassword,
            kSecAttrService as String: service,
            kSecAttrAccount as String: name,
        ]
    }
}
#endif

/// A value as JSON in a store, read once.
struct Kept<Value: Codable> {
    private let store: any PushStore
    private let name: String
    private var known: Value?

    init(_ store: any PushStore, _ name: String) {
        self.store = store
        self.name = name
    }

    /// `new` if nothing is stored, or nothing that this version understands.
    mutating func read(new: () -> Value) throws -> Value {
        if let known { return known }
        let data: Data?
        do { data = try store.read(name) } catch { throw PushError(.storage) }
        let value = data.flatMap { try? JSONDecoder().decode(Value.self, from: $0) } ?? new()
        known = value
        return value
    }

    mutating func write(_ value: Value) throws {
        do {
            let data = try JSONEncoder().encode(value)
            known = value
            try store.write(data, name)
        } catch { throw PushError(.storage) }
    }
}
