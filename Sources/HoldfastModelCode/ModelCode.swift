public import HoldfastStore

/// Swift classes for a model, as files of source code.
///
/// For each entity there is a class, which is written once and then belongs to you, and an extension with its properties, which is always
/// written. The classes declare their entities, so a program needs no model file:
///
/// ```swift
/// let code = ModelCode(model, name: "Kennel")
/// for file in code.files { print(file.name) }  // Dog+Class.swift, Dog+Properties.swift, KennelModelClasses.swift
/// ```
///
/// The code depends on the model alone: the same model gives the same bytes.
public struct ModelCode: Sendable {
  /// Whether other modules can use the classes.
  @nonexhaustive public enum Access: String, Sendable, CaseIterable {
    /// Only the module that contains them.
    case `internal`
    /// Every module.
    case `public`

    /// What declarations begin with.
    var prefix: String { self == .public ? "public " : "" }
    /// What declarations of types begin with. They belong to no actor, also in a module whose default is the main actor.
    var typePrefix: String { prefix + "nonisolated " }
  }

  /// A file of source code.
  public struct File: Sendable, Hashable {
    /// The name.
    public let name: String
    /// The source code.
    public let text: String
    /// Whether the file is only written if it doesn't exist, because people change it.
    public let isKept: Bool
  }

  /// The files, sorted by name.
  public let files: [File]
  /// All code in one file, for build plugins. Classes of entities without subentities are final.
  public let singleFile: File
  /// What the classes can't declare, in sentences, such as the accessor of a fetched property that can't be fetched.
  public let notes: [String]

  /// Generates the code of a model.
  ///
  /// - Parameters:
  ///   - model: The model.
  ///   - name: The name of the model, such as that of its file. The list of all classes is named after it.
  ///   - access: Whether other modules can use the classes. Defaults to internal.
  public init(_ model: ManagedObjectModel, name: String, access: Access = .internal) {
    let names = SwiftNames(model, list: SwiftNames.list(name))
    let entities = model.declarations.sorted { $0.name < $1.name }.map { EntityCode($0, model, names, access) }
    let composites = model.composites.sorted { $0.name < $1.name }.map { CompositeCode($0, names, access) }
    let list = ModelListCode(model, name: name, names, access)
    files =
      (entities.flatMap { entity in
        [
          File(name: "\(entity.className)+Class.swift", text: entity.classFile, isKept: true),
          File(name: "\(entity.className)+Properties.swift", text: entity.propertiesFile, isKept: false),
        ]
      } + composites.map { File(name: "\($0.typeName)+Composite.swift", text: $0.file, isKept: false) }
      + [File(name: "\(list.typeName).swift", text: list.file, isKept: false)]).sorted { $0.name < $1.name }
    let sections = entities.flatMap { [$0.classSource, $0.propertiesSource] } + composites.map(\.source) + [list.source]
    let types = entities.flatMap(\.types) + composites.flatMap(\.types) + list.types
    singleFile = File(
      name: "\(list.typeName).swift", text: SwiftText.file(sections.joined(separator: "\n"), access, types: types), isKept: false)
    notes = entities.flatMap(\.notes) + composites.flatMap(\.notes) + list.notes
  }
}
