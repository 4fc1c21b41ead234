import HoldfastSupport
import Synchronization

/// Finds the name of a property by its key path.
enum KeyPathNames {
  private struct Entry {
    /// Keeps the key path alive, so that no other key path gets the same address.
    let keyPath: AnyKeyPath
    let expression: QueryExpression
  }

  /// Recently used key paths, at the hash of their identity.
  ///
  /// A plain array: a dictionary of key paths would cost more to set up than a process saves by it.
  private nonisolated(unsafe) static var cache: [Entry?] = Array(repeating: nil, count: 512)  // because every access holds the lock
  private static let lock = Mutex(())

  /// The name of a key path's property.
  ///
  /// A request with any other key path fails when it is executed, since stores can't evaluate computed properties.
  static func name(_ keyPath: AnyKeyPath, in type: ManagedObject.Type) -> String {
    known(keyPath, in: type) ?? unlisted(keyPath, type)
  }

  /// The expression of a key path's property, as ``name(_:in:)``. Queries of known key paths allocate none.
  static func expression(_ keyPath: AnyKeyPath, in type: ManagedObject.Type) -> QueryExpression {
    knownExpression(keyPath, type) ?? .property(PropertyPath(unlisted(keyPath, type)))
  }

  /// The name of a key path's property; nil if it isn't a property of the model.
  static func known(_ keyPath: AnyKeyPath, in type: ManagedObject.Type) -> String? {
    if case .property(let path)? = knownExpression(keyPath, type) { path.first } else { nil }
  }

  /// A name that no entity has. It becomes part of the error message.
  private static func unlisted(_ keyPath: AnyKeyPath, _ type: ManagedObject.Type) -> String {
    "<key path of type \(Swift.type(of: keyPath).valueType) that is none of the properties listed in \(type).properties>"
  }

  private static func knownExpression(_ keyPath: AnyKeyPath, _ type: ManagedObject.Type) -> QueryExpression? {
    cached(keyPath) {
      (binding(of: keyPath, bindings(of: type))?.name ?? KeyPathProbe.name(of: keyPath, type)).map { .property(PropertyPath($0)) }
    }
  }

  /// The expression that was found for a key path before, or the result of a closure, which is kept.
  static func cached(_ keyPath: AnyKeyPath, _ find: () -> QueryExpression?) -> QueryExpression? {
    let place = multiplicativeHash(Int64(Int(bitPattern: ObjectIdentifier(keyPath)))) & 511
    let found = lock.withLock { _ -> QueryExpression? in
      for probe in 0..<4 {
        guard let entry = cache[(place + probe) & 511] else { break }
        if entry.keyPath === keyPath { return entry.expression }
      }
      return nil
    }
    if let found { return found }
    guard let expression = find() else { return nil }
    lock.withLock { _ in
      let free = (0..<4).first { cache[(place + $0) & 511] == nil } ?? 0
      cache[(place + free) & 511] = Entry(keyPath: keyPath, expression: expression)
    }
    return expression
  }

  /// The bindings of each class whose key paths were looked up, since a class creates them for each call. Not a dictionary; see
  /// ``AccessorCheck``.
  private static let bindings = Mutex<[Bindings]>([])

  /// A class's bindings.
  private struct Bindings: @unchecked Sendable {  // because they never change, and their closures only create or follow key paths
    let type: ManagedObject.Type
    let list: [PropertyBinding]
  }

  private static func bindings(of type: ManagedObject.Type) -> [PropertyBinding] {
    if let known = bindings.withLock({ $0.first { $0.type == type } }) { return known.list }
    let made = Bindings(type: type, list: type.properties)
    bindings.withLock { $0.append(made) }
    return made.list
  }

  /// Creates the key paths of only those bindings that can match, since creating one takes as long as a SQL query.
  private static func binding(of keyPath: AnyKeyPath, _ bindings: [PropertyBinding]) -> PropertyBinding? {
    let valueType = Swift.type(of: keyPath).valueType
    for binding in bindings {
      if case .attribute(_, let type) = binding.kind, type == valueType, binding.keyPath() == keyPath { return binding }
    }
    return bindings.first { binding in
      if case .attribute = binding.kind { false } else { binding.keyPath() == keyPath }
    }
  }
}
