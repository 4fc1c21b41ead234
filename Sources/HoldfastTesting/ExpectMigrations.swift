public import Holdfast
import HoldfastStore
public import Testing

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Records an issue for each former version of a model from which a store can't be migrated to the current one.
///
/// Keep the model of each version that you shipped in a folder of your repository, as a file that ``recordModel(_:as:in:)`` writes. Then a
/// change that would leave the users' stores behind fails when it is made:
///
/// ```swift
/// @Test func everyShippedVersionCanBeMigrated() throws {
///   let current = try ManagedObjectModel.declared(by: [Dog.self, Walk.self])
///   try expectMigrations(fromModelsIn: "Tests/Models", to: current)
/// }
/// ```
///
/// Only the models are compared. Objects that violate a new uniqueness constraint are found when a store is migrated.
///
/// If some changes need code, pass the plan to ``expectMigrations(fromModelsIn:with:allowingLosses:sourceLocation:)``.
///
/// - Parameters:
///   - folder: The path of a folder with files whose names end in `.json`.
///   - model: The current version.
///   - allowingLosses: Whether the current version may lack something that a former one had. Defaults to false. Such stores are only opened with
///     ``/HoldfastStore/StoreDescription/removesDataWhenMigrating``.
///   - location: Where issues are reported. Defaults to the line of the call.
/// - Throws: Errors of reading, and ``/HoldfastStore/ModelError`` if a file has an invalid model.
public func expectMigrations(
  fromModelsIn folder: String, to model: ManagedObjectModel, allowingLosses: Bool = false,
  sourceLocation location: SourceLocation = #_sourceLocation
) throws {
  try expectMigrations(fromModelsIn: folder, allowingLosses, location) { former in
    try MappingModel.inferred(from: former, to: model).mayLoseData
  }
}

/// Records an issue for each former version of a model from which a plan can't migrate a store to its last version.
///
/// The code of the plan's stages isn't run. Stages may remove entities and properties, because the plan was written for that. A version from
/// which no stages lead to the last one is compared with the last one, as by
/// ``expectMigrations(fromModelsIn:to:allowingLosses:sourceLocation:)``.
///
/// - Parameters:
///   - folder: The path of a folder with files whose names end in `.json`; see ``recordModel(_:as:in:)``.
///   - plan: The plan with which the program migrates its stores.
///   - allowingLosses: Whether the last version may lack something that a version without stages had. Defaults to false.
///   - location: Where issues are reported. Defaults to the line of the call.
/// - Throws: Errors of reading, and ``/HoldfastStore/ModelError`` if a file has an invalid model.
public func expectMigrations(
  fromModelsIn folder: String, with plan: MigrationPlan, allowingLosses: Bool = false,
  sourceLocation location: SourceLocation = #_sourceLocation
) throws {
  try expectMigrations(fromModelsIn: folder, allowingLosses, location) { try plan.mayLoseData(from: $0) }
}

private func expectMigrations(
  fromModelsIn folder: String, _ allowingLosses: Bool, _ location: SourceLocation, _ mayLoseData: (ManagedObjectModel) throws -> Bool
) throws {
  let names = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix(".json") }.sorted()
  if names.isEmpty {
    Issue.record("The folder \(folder) contains no model. Write the shipped ones with recordModel.", sourceLocation: location)
  }
  for name in names {
    let former = try ManagedObjectModel.decoded(canonicalJSON: Array(try Data(contentsOf: URL(fileURLWithPath: folder + "/" + name))))
    do {
      if try !mayLoseData(former) || allowingLosses { continue }
      Issue.record(
        "\(name): The current model lacks an entity, a property or an order of this version, so a store with such data isn't opened.",
        sourceLocation: location)
    } catch let error as MigrationError {
      Issue.record("\(name): \(error)", sourceLocation: location)
    }
  }
}

/// Writes a version of a model to a file for ``expectMigrations(fromModelsIn:to:allowingLosses:sourceLocation:)``.
///
/// - Parameters:
///   - model: The model that is shipped.
///   - version: The file's name without `.json`, such as "2.1".
///   - folder: The folder, which exists.
/// - Throws: Errors of writing. An existing file isn't replaced.
public func recordModel(_ model: ManagedObjectModel, as version: String, in folder: String) throws {
  try Data(try model.canonicalJSON()).write(to: URL(fileURLWithPath: "\(folder)/\(version).json"), options: .withoutOverwriting)
}
