/// The objects of a keyed archive (`NSKeyedArchiver`), as plain values. No class is ever looked up or made.
///
/// Two faces: whoever knows the structure walks it with ``root`` and ``object(_:)``, and who wants plain data takes
/// ``propertyListValue(limits:)``.
///
/// ```swift
/// let archive = try KeyedArchive(bytes)
/// guard case .instance(let model) = try archive.object(archive.root), model.className == "NSManagedObjectModel" else { return [] }
/// let entities = try archive.entries(model["NSEntities"]) ?? []
/// return entities.map(\.key)
/// ```
///
/// It is not a decoder: what a class's keys mean is the reader's to know.
public struct KeyedArchive: Sendable {
  /// An object of an archive.
  public enum Object: Sendable, Hashable {
    /// No object.
    case null
    /// A text, number, truth value, date or bytes that the archive keeps as it is.
    case value(PropertyList)
    /// An object of a class.
    case instance(Instance)
  }

  /// An object of a class: its class's names and the values under its keys.
  public struct Instance: Sendable, Hashable {
    /// The number of the object in the archive, by which objects are told apart.
    public let number: Int
    /// The name of the class.
    public let className: String
    /// The names of the class and its superclasses, as far as the archive says them.
    public let classNames: [String]
    /// What is kept under each key, and the class under `$class`: as it is in the archive, without a copy.
    package let fields: [String: PropertyList]

    /// What is kept under each key. References to other objects are ``PropertyList/uid(_:)``. Takes time in proportion to the keys.
    public var values: [String: PropertyList] { fields.filter { $0.key != Instance.classKey } }

    /// What is kept under a key; nil for nothing.
    public subscript(key: String) -> PropertyList? { key == Instance.classKey ? nil : fields[key] }

    package static let classKey = "$class"

    /// Whether it is of a class or of one of its subclasses.
    public func isKind(of name: String) -> Bool { className == name || classNames.contains(name) }
  }

  /// What the archive gives names to: mostly one object named `root`.
  public let top: [String: PropertyList]
  private let objects: [PropertyList]
  private let classes: [Int: (name: String, names: [String])]

  /// How many objects there are.
  public var count: Int { objects.count }

  /// Reads an archive in the binary or the XML format.
  ///
  /// - Throws: ``PropertyListError``.
  public init(_ bytes: [UInt8], limits: PropertyListLimits = PropertyListLimits()) throws(PropertyListError) {
    try self.init(PropertyList(bytes, limits: limits))
  }

  /// Takes a property list as an archive.
  ///
  /// - Throws: ``PropertyListError`` when it is none.
  public init(_ list: PropertyList) throws(PropertyListError) {
    guard let archiver = list["$archiver"]?.string, let top = list["$top"]?.dictionary, let objects = list["$objects"]?.array else {
      throw PropertyListError(.notAPropertyList, "It is a property list, but not a keyed archive.")
    }
    guard list["$version"]?.integer == 100_000 else {
      throw PropertyListError(.unsupported, "The keyed archive, by \(archiver.prefix(40)), has a version that is not known.")
    }
    self.top = top
    self.objects = objects
    classes = Self.classes(objects)
  }

  /// The classes, by the numbers of the objects that describe them.
  private static func classes(_ objects: [PropertyList]) -> [Int: (name: String, names: [String])] {
    var classes: [Int: (name: String, names: [String])] = [:]
    for (number, object) in objects.enumerated() {
      guard case .dictionary(let values) = object, let name = values["$classname"]?.string else { continue }
      classes[number] = (name, (values["$classes"]?.array ?? []).compactMap(\.string))
    }
    return classes
  }

  /// The reference to the outermost object: the one named `root`, or the only one.
  ///
  /// - Throws: ``PropertyListError`` when there is none, or more than one and none is named so.
  public var root: PropertyList {
    get throws(PropertyListError) {
      let found = top["root"] ?? (top.count == 1 ? top.first?.value : nil)
      guard let found, found.uid != nil else {
        throw PropertyListError(.damaged, "The keyed archive does not say which object is its root.")
      }
      return found
    }
  }

  /// The object that a reference leads to. Nothing and values that are no references are objects too: no object, and themselves.
  ///
  /// - Throws: ``PropertyListError`` when a reference leads nowhere, or to an object without class.
  public func object(_ reference: PropertyList?) throws(PropertyListError) -> Object {
    guard let reference else { return .null }
    guard case .uid(let uid) = reference else { return .value(reference) }
    guard let number = Int(exactly: uid), number < objects.count else {
      throw PropertyListError(.damaged, "The keyed archive has no object \(uid).")
    }
    switch objects[number] {
    case .string("$null"): return .null
    case .dictionary(let values): return .instance(try instance(number, values))
    case .uid, .array, .null: throw PropertyListError(.damaged, at: .object(number), "It is no object.")
    case let value: return .value(value)
    }
  }

  private func instance(_ number: Int, _ values: [String: PropertyList]) throws(PropertyListError) -> Instance {
    guard let uid = values[Instance.classKey]?.uid, let place = Int(exactly: uid), let description = classes[place] else {
      throw PropertyListError(.damaged, at: .object(number), "The object has no class.")
    }
    return Instance(number: number, className: description.name, classNames: description.names, fields: values)
  }
}
