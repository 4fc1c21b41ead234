/// Where a store keeps its data: in a file, on a server, or in memory under a name.
///
/// Errors and logs contain the ``description``, which has no credentials:
///
/// ```swift
/// let server = StoreLocation(url: "https://reader:secret@example.org/notes?token=123")
/// print(server)  // https://example.org/notes
/// ```
public struct StoreLocation: Sendable, Hashable {
  /// The text with which the store is opened: a path, a URL, or a connection string. It may contain credentials.
  public let address: String
  /// The location without credentials, for errors and logs.
  public let description: String
  /// The path of the file; nil if the location isn't a file.
  public let path: String?

  private init(address: String, description: String, path: String?) {
    self.address = address
    self.description = description
    self.path = path
  }

  /// A file.
  public static func file(_ path: String) -> StoreLocation { StoreLocation(address: path, description: path, path: path) }

  /// A store that isn't kept, such as one in memory. The name appears in errors.
  public static func named(_ name: String) -> StoreLocation { StoreLocation(address: name, description: name, path: nil) }

  /// A server whose address isn't a URL, such as a connection string of the form `host=… password=…`.
  ///
  /// - Parameters:
  ///   - address: The address, with credentials if necessary.
  ///   - description: The address without credentials.
  public init(address: String, description: String) {
    self.init(address: address, description: description, path: nil)
  }

  /// A server's URL. The ``description`` omits the user, the password, the query and the fragment.
  ///
  /// Passwords and queries aren't always escaped. If there is an `@` after the server's name, the description is only the scheme.
  public init(url: String) {
    var (scheme, rest) = ("", url[...])
    if let separator = url.firstRange(of: "://") {
      (scheme, rest) = (String(url[..<separator.upperBound]), url[separator.upperBound...])
    }
    let server = rest.prefix { !"/?#".contains($0) }, path = rest[server.endIndex...]
    let host = server.lastIndex(of: "@").map { server[server.index(after: $0)...] } ?? server
    let description = path.contains("@") ? "…" : host + path.prefix { !"?#".contains($0) }
    self.init(address: url, description: scheme + description, path: nil)
  }
}

extension StoreLocation: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// The ``description``.
  public var debugDescription: String { description }
  /// No children, so that `dump` prints no credentials.
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension StoreLocation: Codable {
  private enum CodingKeys: String, CodingKey { case description, path }

  /// Decodes a location. A server's location then has the description as its address, because encoding omits the address.
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    let description = try values.decode(String.self, forKey: .description)
    let path = try values.decodeIfPresent(String.self, forKey: .path)
    self.init(address: path ?? description, description: description, path: path)
  }

  /// Encodes the description, and the path of a file. Addresses are omitted, because they may contain credentials.
  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(description, forKey: .description)
    try values.encodeIfPresent(path, forKey: .path)
  }
}
