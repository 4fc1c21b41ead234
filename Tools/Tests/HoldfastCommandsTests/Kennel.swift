import Foundation
import HoldfastStore

/// A dog and a walk in an XML store as Core Data writes it, which contains no model.
enum Kennel {
  static let uuid = "B4FC79D0-E654-43EF-9020-A5273B3F104A"

  static func model(_ attributes: AttributeDescription...) throws -> ManagedObjectModel {
    try ManagedObjectModel(
      entities: [
        EntityDescription("Dog", attributes: attributes, relationships: [.toMany("walks", to: "Walk", inverse: "dog")]),
        EntityDescription("Walk", relationships: [.toOne("dog", to: "Dog", inverse: "walks")]),
      ])
  }

  /// The store with the version hashes of a model that has the attribute `firstname`.
  static func xml(of model: ManagedObjectModel) -> String {
    let hashes = model.entityVersionHashesByName.sorted { $0.key < $1.key }.map { entity, hash in
      "<key>\(entity)</key><data>\(Data(hash).base64EncodedString())</data>"
    }
    return """
      <?xml version="1.0" standalone="yes"?>
      <database>
          <databaseInfo>
              <version>134481920</version>
              <UUID>\(uuid)</UUID>
              <nextObjectID>103</nextObjectID>
              <metadata><plist version="1.0"><dict><key>NSStoreModelVersionHashes</key>\
      <dict>\(hashes.joined())</dict></dict></plist></metadata>
          </databaseInfo>
          <object type="DOG" id="z102"><attribute name="firstname" type="string">Fido</attribute>\
      <relationship name="walks" type="0/0" destination="WALK" idrefs="z103"></relationship></object>
          <object type="WALK" id="z103"><relationship name="dog" type="1/1" destination="DOG" idrefs="z102"></relationship></object>
      </database>

      """
  }
}
