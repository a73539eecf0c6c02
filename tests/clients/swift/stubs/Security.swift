// A keychain that is a file for each entry, in the folder that KEYCHAIN names.
import Foundation

public typealias CFDictionary = NSDictionary
public typealias CFString = String
public typealias OSStatus = Int32

public let errSecSuccess: OSStatus = 0
public let errSecItemNotFound: OSStatus = -25300
public let errSecInteractionNotAllowed: OSStatus = -25308

public let kSecClass: CFString = "class"
public let kSecClassGenericPassword: CFString = "genp"
public let kSecAttrService: CFString = "svce"
public let kSecAttrAccount: CFString = "acct"
public let kSecAttrAccessible: CFString = "pdmn"
public let kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly: CFString = "cku"
public let kSecReturnData: CFString = "r_Data"
public let kSecValueData: CFString = "v_Data"

private let folder = URL(fileURLWithPath: ProcessInfo.processInfo.environment["KEYCHAIN"]!)

private func file(_ query: CFDictionary) -> URL {
    folder.appendingPathComponent("\(query[kSecAttrService]!).\(query[kSecAttrAccount]!)")
}

/// While there is a file `locked`. Leaves a file `refused`.
private var isLocked: Bool {
    let isLocked = FileManager.default.fileExists(atPath: folder.appendingPathComponent("locked").path)
    if isLocked { try! Data().write(to: folder.appendingPathComponent("refused")) }
    return isLocked
}

public func SecItemCopyMatching(_ query: CFDictionary, _ result: UnsafeMutablePointer<AnyObject?>?) -> OSStatus {
    if isLocked { return errSecInteractionNotAllowed }
    guard let data = try? Data(contentsOf: file(query)) else { return errSecItemNotFound }
    result?.pointee = data as NSData
    return errSecSuccess
}

public func SecItemAdd(_ attributes: CFDictionary, _ result: UnsafeMutablePointer<AnyObject?>?) -> OSStatus {
    if isLocked { return errSecInteractionNotAllowed }
    try! (attributes[kSecValueData] as! Data).write(to: file(attributes))
    return errSecSuccess
}

public func SecItemUpdate(_ query: CFDictionary, _ change: CFDictionary) -> OSStatus {
    if isLocked { return errSecInteractionNotAllowed }
    guard FileManager.default.fileExists(atPath: file(query).path) else { return errSecItemNotFound }
    try! (change[kSecValueData] as! Data).write(to: file(query))
    return errSecSuccess
}
